// SPDX-License-Identifier: Apache-2.0
#pragma once
// The quantised collectives: which calls are, and their operations. Only where the user has asked for it (BESTRIDE_QUANTIZE, or the info
// key bestride_quantize): their results are approximate.
#include <mpi.h>

#include <optional>

#include "interpose/back/hierarchical/kept_result.hpp"
#include "interpose/back/hierarchical/operands.hpp"
#include "interpose/back/hierarchical/operation.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

class CommEntry;

struct Codes {
  NumberFormat format;  ///< of the numbers
  CodeBits gathered;    ///< of what is gathered: every number is coded once
  CodeBits added;       ///< of what is added
};
/// How allgathers of `type` on this communicator are quantised. All of the type's elements are numbers of one format, which the type
/// signature says and so all members know.
std::optional<Codes> quantised_gather(CommEntry& entry, MPI_Datatype type) noexcept;
/// How reductions are: sums of float and double; of 16-bit integers that the application calls numbers, its own commutative operations.
std::optional<Codes> quantised_sum(CommEntry& entry, MPI_Op op, MPI_Datatype type) noexcept;

/// MPI_Allgather, MPI_Allgatherv.
class QuantisedAllgather final : public Operation {
 public:
  /// `own`: this rank's contribution; nothing in place.
  QuantisedAllgather(std::optional<UserBlocks> own, UserBlocks all, Codes codes) noexcept
      : own_(std::move(own)), all_(std::move(all)), codes_(codes) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { all_.settle(); }
  const char* way() const noexcept override { return "quantised"; }

 private:
  std::optional<UserBlocks> own_;
  UserBlocks all_;
  const Codes codes_;
};

/// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
class QuantisedReduceScatter final : public Operation {
 public:
  /// `kept`: where the result waits.
  QuantisedReduceScatter(UserBlocks input, UserBlocks output, KeptResult kept, Codes codes) noexcept
      : input_(std::move(input)), output_(std::move(output)), kept_(std::move(kept)), codes_(codes) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override;
  const char* way() const noexcept override { return "quantised"; }

 private:
  UserBlocks input_, output_;
  KeptResult kept_;
  const Codes codes_;
};

class QuantisedAllreduce final : public Operation {
 public:
  /// `input`: nothing in place.
  QuantisedAllreduce(std::optional<UserBlocks> input, UserBlocks output, Codes codes) noexcept
      : input_(std::move(input)), output_(std::move(output)), codes_(codes) {}
  Strand begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { output_.settle(); }
  const char* way() const noexcept override { return "quantised"; }

 private:
  std::optional<UserBlocks> input_;
  UserBlocks output_;
  const Codes codes_;
};

}  // namespace bestride
