// SPDX-License-Identifier: Apache-2.0
#pragma once
// MpiReduction: an MPI operation on packed elements of an MPI datatype, applied by the MPI library itself (MPI_Reduce_local), so that every
// operation and type means exactly what it means there.
#include <mpi.h>

#include "collectives/reduction.hpp"
#include "interpose/back/buffer.hpp"
#include "interpose/back/plan.hpp"

namespace bestride {

class MpiReduction final : public Reduction {
 public:
  /// `type` is known (operands.hpp). Check usable(). The operation must not be freed by MPI meanwhile: see the calls that keep it.
  MpiReduction(MPI_Op op, MPI_Datatype type, bool in_one_order);
  bool usable() const noexcept { return contiguous_ || (plan_ && gathered_); }
  void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept override;

 private:
  /// Elements with gaps are spread out to their places, so many at a time.
  static constexpr std::int64_t batch = 256;
  MPI_Op op_;
  MPI_Datatype type_;
  bool contiguous_;
  std::int64_t extent_;
  PlanRef plan_;
  Lease gathered_;
};

}  // namespace bestride
