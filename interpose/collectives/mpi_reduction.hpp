// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiReduction: an MPI operation on packed elements of an MPI datatype. The MPI library applies it (MPI_Reduce_local),
// so every operation and type has exactly the library's semantics; the commonest are computed here
// (number_operations.hpp).
#include <mpi.h>

#include <memory>

#include "base/float_environment.hpp"
#include "collectives/core/operand.hpp"
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
  /// Computes extremes by floating_extreme(), which must not be nullptr for the operation and the type. Called before
  /// the first combine().
  void mark_order() noexcept { computed_ = floating_extreme(op_, type_); }
  /// Of an extreme, after mark_order(): true if one of the results depends_on_order(). Of a floating_sum(): true if one
  /// of them is a NaN.
  bool depends_on_order(const std::byte* results, std::int64_t bytes) const noexcept {
    return op_ == MPI_SUM ? any_nan(results, bytes / element_bytes, type_)
                          : bestride::depends_on_order(results, bytes / element_bytes, type_);
  }
  /// For a floating_sum() of `ranks` ranks: must_leave() is to tell whether the result may be a NaN, because it depends
  /// on the MPI library which of several NaNs remains.
  void leave_nans(int ranks) noexcept { nans_left_by_ = ranks; }
  bool leaves_nans() const noexcept { return nans_left_by_ > 0; }
  /// True if the call must be left to the MPI library because of `numbers`, this rank's contribution.
  bool must_leave(const Operand& numbers) const noexcept {
    return leaves_nans() && sum_may_be_nan(numbers.at(0), numbers.bytes() / element_bytes, type_, nans_left_by_);
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
  int nans_left_by_ = 0;                 ///< ranks; 0: the result may be a NaN
  FloatControl floats_;                  ///< of the calling thread; the progress thread has to compute in the same way
};

}  // namespace bestride::inline interpose
