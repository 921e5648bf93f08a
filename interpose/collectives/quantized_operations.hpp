// SPDX-License-Identifier: Apache-2.0
#pragma once
// The quantized collectives: which calls are quantized, and their operations. Opt-in (BESTRIDE_QUANTIZE, or the info
// key bestride_quantize), because their results are approximate.
#include <mpi.h>

#include <optional>

#include "interpose/collectives/operands.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/reduce_scatter_result.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline interpose {

class CommEntry;

struct Codes {
  NumberFormat format;  ///< of the numbers
  CodeBits gathered;    ///< for gathered numbers; each is coded once
  CodeBits added;       ///< for summands
};
/// How allgathers of `type` on this communicator are quantized. All elements of the type must be numbers of one format.
/// This follows from the type signature, so all members know it.
std::optional<Codes> quantized_gather(CommEntry& entry, MPI_Datatype type) noexcept;
/// How reductions are quantized: sums of float and double; and user-defined commutative operations on 16-bit integers,
/// if the application declares these to be numbers.
std::optional<Codes> quantized_sum(CommEntry& entry, MPI_Op op, MPI_Datatype type) noexcept;

/// MPI_Allgather, MPI_Allgatherv.
class QuantizedAllgather final : public Operation {
 public:
  /// `own`: this rank's contribution; no value if in place.
  QuantizedAllgather(std::optional<UserBlocks> own, UserBlocks all, Codes codes) noexcept
      : own_(std::move(own)), all_(std::move(all)), codes_(codes) {}
  bool fill() noexcept override { return (!own_ || own_->fill()) && all_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { all_.complete(); }
  const char* variant() const noexcept override { return "quantized"; }

 private:
  std::optional<UserBlocks> own_;
  UserBlocks all_;
  const Codes codes_;
};

/// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
class QuantizedReduceScatter final : public Operation {
 public:
  /// `kept`: where the result is assembled.
  QuantizedReduceScatter(UserBlocks input, UserBlocks output, ReduceScatterResult kept, Codes codes) noexcept
      : input_(std::move(input)), output_(std::move(output)), kept_(std::move(kept)), codes_(codes) {}
  bool fill() noexcept override { return input_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  void finish() noexcept override;
  const char* variant() const noexcept override { return "quantized"; }

 private:
  UserBlocks input_, output_;
  ReduceScatterResult kept_;
  const Codes codes_;
};

class QuantizedAllreduce final : public Operation {
 public:
  /// `input`: no value if in place.
  QuantizedAllreduce(std::optional<UserBlocks> input, UserBlocks output, Codes codes) noexcept
      : input_(std::move(input)), output_(std::move(output)), codes_(codes) {}
  bool fill() noexcept override { return (!input_ || input_->fill()) && output_.fill(); }
  Task begin(Hierarchy& hierarchy) override;
  void finish() noexcept override { output_.complete(); }
  const char* variant() const noexcept override { return "quantized"; }

 private:
  std::optional<UserBlocks> input_;
  UserBlocks output_;
  const Codes codes_;
};

}  // namespace bestride::inline interpose
