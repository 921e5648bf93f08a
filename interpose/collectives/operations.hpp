// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations: each collective's arguments as operands, and the task that carries it out.
#include <memory>
#include <optional>

#include "collectives/core/reduction.hpp"
#include "interpose/collectives/mpi_reduction.hpp"
#include "interpose/collectives/operands.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/reduce_scatter_result.hpp"
#include "interpose/objects/buffer_pool.hpp"

namespace bestride::inline interpose {

/// MPI_Allgather, MPI_Allgatherv.
class AllgatherOperation final : public Operation {
 public:
  /// `own`: this rank's contribution; no value if in place.
  AllgatherOperation(std::optional<UserBlocks> own, UserBlocks all) noexcept
      : own_(std::move(own)), all_(std::move(all)) {}
  bool fill() noexcept override { return (!own_ || own_->fill()) && all_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override { all_.complete(); }

 private:
  std::optional<UserBlocks> own_;
  UserBlocks all_;
};

class BroadcastOperation final : public Operation {
 public:
  BroadcastOperation(UserBlocks data, int root) noexcept : data_(std::move(data)), root_(root) {}
  bool fill() noexcept override { return data_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override { data_.complete(); }

 private:
  UserBlocks data_;
  int root_;
};

/// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
class ReduceScatterOperation final : public Operation {
 public:
  /// `input`: a block for each rank. `kept`: where the result is assembled.
  ReduceScatterOperation(UserBlocks input, UserBlocks output, ReduceScatterResult kept, MpiReduction reduction) noexcept
      : input_(std::move(input)),
        output_(std::move(output)),
        kept_(std::move(kept)),
        reduction_(std::move(reduction)) {}
  bool fill() noexcept override { return input_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override;

 private:
  UserBlocks input_, output_;
  ReduceScatterResult kept_;
  MpiReduction reduction_;
};

class AllreduceOperation final : public Operation {
 public:
  /// `input`: no value if in place. `in_vain`: nullptr, or set to whether the result depends_on_order(); the same on
  /// all members. Extremes must mark_order(). The output is then as before if in place. On one node, `reduction` may
  /// leave_nans() instead, which keeps no copy of the output.
  AllreduceOperation(std::optional<UserBlocks> input, UserBlocks output, MpiReduction reduction,
                     bool* in_vain = nullptr) noexcept
      : input_(std::move(input)), output_(std::move(output)), reduction_(std::move(reduction)), in_vain_(in_vain) {}
  bool fill() noexcept override;
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override;

 private:
  std::optional<UserBlocks> input_;
  UserBlocks output_;
  MpiReduction reduction_;
  bool* in_vain_;
  std::byte* kept_ = nullptr;  ///< the input, if in place and the result may be in vain; in one of these:
  BufferLease lease_;
  std::unique_ptr<std::byte[]> memory_;
};

/// MPI_Reduce.
class ReduceOperation final : public Operation {
 public:
  /// `input`: no value if in place. `output`: only on the root. `reduction` may leave_nans(): the members agree on it
  /// first, because only the root will see the result.
  ReduceOperation(std::optional<UserBlocks> input, std::optional<UserBlocks> output, int root,
                  MpiReduction reduction) noexcept
      : input_(std::move(input)), output_(std::move(output)), root_(root), reduction_(std::move(reduction)) {}
  bool fill() noexcept override { return (!input_ || input_->fill()) && (!output_ || output_->fill()); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  bool asks_members() const noexcept override { return reduction_.leaves_nans(); }
  bool must_leave() const noexcept override { return reduction_.must_leave((input_ ? *input_ : *output_).of(0)); }
  void finish() noexcept override {
    if (output_) output_->complete();
  }

 private:
  std::optional<UserBlocks> input_, output_;
  int root_;
  MpiReduction reduction_;
};

/// MPI_Gather; on one node MPI_Gatherv, with `block_bytes` of the longest block. `own` goes to the root, which has
/// `all`. In place, the root's own block is already there.
class GatherOperation final : public Operation {
 public:
  GatherOperation(std::optional<UserBlocks> own, std::optional<UserBlocks> all, std::int64_t block_bytes,
                  int root) noexcept
      : own_(std::move(own)), all_(std::move(all)), block_bytes_(block_bytes), root_(root) {}
  bool fill() noexcept override { return (!own_ || own_->fill()) && (!all_ || all_->fill()); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override {
    if (all_) all_->complete();
  }

 private:
  std::optional<UserBlocks> own_, all_;
  std::int64_t block_bytes_;
  int root_;
};

/// MPI_Scatter; on one node MPI_Scatterv, with `block_bytes` of the longest block. The root has `all`, and each rank
/// receives `own`. In place, the root's own block stays.
class ScatterOperation final : public Operation {
 public:
  ScatterOperation(std::optional<UserBlocks> all, std::optional<UserBlocks> own, std::int64_t block_bytes,
                   int root) noexcept
      : all_(std::move(all)), own_(std::move(own)), block_bytes_(block_bytes), root_(root) {}
  bool fill() noexcept override { return (!all_ || all_->fill()) && (!own_ || own_->fill()); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override {
    if (own_) own_->complete();
  }

 private:
  std::optional<UserBlocks> all_, own_;
  std::int64_t block_bytes_;
  int root_;
};

/// MPI_Alltoall; on one node MPI_Alltoallv, and MPI_Alltoallw with a type for each block.
template <class Blocks>
class AlltoallOperationOf final : public Operation {
 public:
  /// `votes`: between nodes, ranks know only their own blocks.
  AlltoallOperationOf(Blocks input, Blocks output, bool votes) noexcept
      : input_(std::move(input)), output_(std::move(output)), votes_(votes) {}
  bool fill() noexcept override { return input_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  Task begin(Rounds& rounds) override;
  void finish() noexcept override { output_.complete(); }

 private:
  Blocks input_, output_;
  bool votes_;
};
using AlltoallOperation = AlltoallOperationOf<UserBlocks>;
using AlltoallwOperation = AlltoallOperationOf<TypedUserBlocks>;

}  // namespace bestride::inline interpose
