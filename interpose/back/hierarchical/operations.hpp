// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations: each collective's arguments as operands, and the strand that carries it out.
#include <memory>
#include <optional>

#include "collectives/reduction.hpp"
#include "interpose/back/hierarchical/kept_result.hpp"
#include "interpose/back/hierarchical/mpi_reduction.hpp"
#include "interpose/back/hierarchical/operands.hpp"
#include "interpose/back/hierarchical/operation.hpp"

namespace bestride {

/// MPI_Allgather, MPI_Allgatherv.
class AllgatherOperation final : public Operation {
 public:
  /// `own`: this rank's contribution; nothing in place.
  AllgatherOperation(std::optional<UserBlocks> own, UserBlocks all) noexcept : own_(std::move(own)), all_(std::move(all)) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { all_.settle(); }

 private:
  std::optional<UserBlocks> own_;
  UserBlocks all_;
};

class BroadcastOperation final : public Operation {
 public:
  BroadcastOperation(UserBlocks data, int root) noexcept : data_(std::move(data)), root_(root) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { data_.settle(); }

 private:
  UserBlocks data_;
  int root_;
};

/// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
class ReduceScatterOperation final : public Operation {
 public:
  /// `input`: a block for each rank. `kept`: where the result waits.
  ReduceScatterOperation(UserBlocks input, UserBlocks output, KeptResult kept, MpiReduction reduction) noexcept
      : input_(std::move(input)), output_(std::move(output)), kept_(std::move(kept)), reduction_(std::move(reduction)) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override;

 private:
  UserBlocks input_, output_;
  KeptResult kept_;
  MpiReduction reduction_;
};

class AllreduceOperation final : public Operation {
 public:
  /// `input`: nothing in place.
  AllreduceOperation(std::optional<UserBlocks> input, UserBlocks output, MpiReduction reduction) noexcept
      : input_(std::move(input)), output_(std::move(output)), reduction_(std::move(reduction)) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { output_.settle(); }

 private:
  std::optional<UserBlocks> input_;
  UserBlocks output_;
  MpiReduction reduction_;
};

/// MPI_Reduce.
class ReduceOperation final : public Operation {
 public:
  /// `input`: nothing in place. `output`: on the root.
  ReduceOperation(std::optional<UserBlocks> input, std::optional<UserBlocks> output, int root, MpiReduction reduction) noexcept
      : input_(std::move(input)), output_(std::move(output)), root_(root), reduction_(std::move(reduction)) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override {
    if (output_) output_->settle();
  }

 private:
  std::optional<UserBlocks> input_, output_;
  int root_;
  MpiReduction reduction_;
};

/// In place of the size of blocks that are equal: each is as long as its sender says (MPI_Gatherv, MPI_Scatterv).
inline constexpr std::int64_t sizes_are_told = -1;

/// MPI_Gather(v): `own` goes to the root, where `all` is. In place, `own` is there already.
class GatherOperation final : public Operation {
 public:
  GatherOperation(std::optional<UserBlocks> own, std::optional<UserBlocks> all, std::int64_t block_bytes, int root) noexcept
      : own_(std::move(own)), all_(std::move(all)), block_bytes_(block_bytes), root_(root) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override {
    if (all_) all_->settle();
  }

 private:
  std::optional<UserBlocks> own_, all_;
  std::int64_t block_bytes_;
  int root_;
};

/// MPI_Scatter(v): what the root has in `all` goes to each one's `own`. In place, the root's own stays.
class ScatterOperation final : public Operation {
 public:
  ScatterOperation(std::optional<UserBlocks> all, std::optional<UserBlocks> own, std::int64_t block_bytes, int root) noexcept
      : all_(std::move(all)), own_(std::move(own)), block_bytes_(block_bytes), root_(root) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override {
    if (own_) own_->settle();
  }

 private:
  std::optional<UserBlocks> all_, own_;
  std::int64_t block_bytes_;
  int root_;
};

/// MPI_Alltoall; with blocks that are not equal, MPI_Alltoallv.
class AlltoallOperation final : public Operation {
 public:
  AlltoallOperation(UserBlocks input, UserBlocks output, bool equal) noexcept : input_(std::move(input)), output_(std::move(output)), equal_(equal) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { output_.settle(); }

 private:
  UserBlocks input_, output_;
  bool equal_;
};

}  // namespace bestride
