// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/mpi_reduction.hpp"

#include <algorithm>

#include "interpose/collectives/operands.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

bool MpiReduction::possible(MPI_Datatype type) noexcept {
  if (predefined(type) || is_pair_with_gaps(type)) return true;
  const ElementSize element = element_size(type);
  if (element.packed <= 0 || element.extent <= 0 || element.extent > half / 2) return false;
  // Asks MPI, because all members must get the same answer, including one that has no memory to decode the type.
  MPI_Aint low = 0, length = 0;
  return real.Type_get_true_extent(type, &low, &length) == MPI_SUCCESS && low >= 0 && length <= half / 2 &&
         low <= half / 2 - length;
}

MpiReduction::MpiReduction(MPI_Op op, MPI_Datatype type, const ReductionTree& order)
    : op_(op), type_(type), computed_(integer_operation(op, type)) {
  if (!computed_) computed_ = floating_sum(op, type);
  const ElementSize element = element_size(type);
  element_bytes = element.packed;
  extent_ = element.extent;
  tree = order;
  if (predefined(type)) return;
  batch_ = half / 2 / extent_;
  places_ = std::make_unique<std::byte[]>(2 * half);
  if (TypeEntry* entry = runtime().types.find(type)) {
    entry->expect_reuse();
    plan_ = entry->plan(batch_);
  }
  if (plan_ && (!plan_->layout() || !plan_->packer())) plan_ = PlanRef();
}

void MpiReduction::lay_out(const std::byte* packed, std::int64_t bytes, std::byte* places) const noexcept {
  int at = 0;
  if (plan_)
    plan_->packer()->unpack_range(places, packed, 0, bytes);
  else
    real.Unpack(packed, static_cast<int>(bytes), &at, places, static_cast<int>(bytes / element_bytes), type_,
                MPI_COMM_SELF);
}

void MpiReduction::pack(const std::byte* places, std::int64_t bytes, std::byte* packed) const noexcept {
  int at = 0;
  if (plan_)
    plan_->packer()->pack_range(packed, places, 0, bytes);
  else
    real.Pack(places, static_cast<int>(bytes / element_bytes), type_, packed, static_cast<int>(bytes), &at,
              MPI_COMM_SELF);
}

void MpiReduction::combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept {
  if (!tree.ordered()) return apply(in, inout, bytes);
  const FloatControl::Scope as_called(floats_);
  apply(in, inout, bytes);
}

void MpiReduction::apply(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept {
  if (computed_) return computed_(in, inout, bytes / element_bytes);
  if (batch_ == 0) {
    real.Reduce_local(in, inout, static_cast<int>(bytes / element_bytes), type_, op_);
    return;
  }
  std::byte* operands = places_.get();
  std::byte* results = operands + half;
  for (std::int64_t first = 0; first < bytes; first += batch_ * element_bytes) {
    const std::int64_t here = std::min(bytes - first, batch_ * element_bytes);
    lay_out(in + first, here, operands);
    lay_out(inout + first, here, results);
    real.Reduce_local(operands, results, static_cast<int>(here / element_bytes), type_, op_);
    pack(results, here, inout + first);
  }
}

}  // namespace bestride::inline interpose
