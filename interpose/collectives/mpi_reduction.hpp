// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiReduction: an MPI operation on packed elements of an MPI datatype. The MPI library applies it (MPI_Reduce_local),
// so every operation and type has exactly the library's semantics; the commonest are computed here
// (number_operations.hpp).
#include <mpi.h>

#include <memory>

#include "base/float_environment.hpp"
#include "collectives/core/reduction.hpp"
#include "interpose/collectives/number_operations.hpp"
#include "interpose/objects/plan.hpp"

namespace bestride::inline interpose {

class MpiReduction final : public Reduction {
 public:
  /// True if elements of this known type (operands.hpp) can be laid out as the operation expects them. The same answer
  /// on all members.
  static bool possible(MPI_Datatype type) noexcept;
  /// `type` must be possible(). Operation and type must outlive this object. May throw std::bad_alloc.
  MpiReduction(MPI_Op op, MPI_Datatype type, const ReductionTree& order);
  /// Before the first combine(): computes extremes as floating_extreme(), which must not be nullptr for the operation
  /// and the type.
  void mark_order() noexcept { computed_ = floating_extreme(op_, type_); }
  /// True if a result depends_on_order().
  bool depends_on_order(const std::byte* results, std::int64_t bytes) const noexcept {
    return bestride::depends_on_order(results, bytes / element_bytes, type_);
  }
  void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept override;

 private:
  void apply(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept;
  /// lay_out() and pack() copy between packed elements and their places in one half of places_.
  void lay_out(const std::byte* packed, std::int64_t bytes, std::byte* places) const noexcept;
  void pack(const std::byte* places, std::int64_t bytes, std::byte* packed) const noexcept;

  static constexpr std::int64_t half = 16 * 1024;  ///< bytes of elements laid out at a time
  MPI_Op op_;
  MPI_Datatype type_;
  NumberOperation computed_;  ///< nullptr: the MPI library applies it
  std::int64_t extent_;
  std::int64_t batch_ = 0;               ///< elements with gaps that are laid out at a time; 0: there are no gaps
  PlanRef plan_;                         ///< of a batch; none: by MPI_Pack
  std::unique_ptr<std::byte[]> places_;  ///< two halves
  FloatControl floats_;                  ///< of the calling thread; the progress thread has to compute in the same way
};

}  // namespace bestride::inline interpose
