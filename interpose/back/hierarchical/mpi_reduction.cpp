// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/mpi_reduction.hpp"

#include <algorithm>

#include "interpose/back/calls.hpp"
#include "interpose/back/hierarchical/operands.hpp"
#include "interpose/back/hierarchical/predefined.hpp"
#include "interpose/back/runtime.hpp"

namespace bestride {

MpiReduction::MpiReduction(MPI_Op op, MPI_Datatype type, bool in_one_order) : op_(op), type_(type), contiguous_(predefined(type) != nullptr) {
  const ElementSize element = element_size(type);
  element_bytes = element.packed;
  extent_ = element.extent;
  ordered = in_one_order;
  if (contiguous_) return;
  if (TypeEntry* entry = runtime().types.find(type)) {
    entry->expect_reuse();
    plan_ = entry->plan(batch);
    if (plan_ && (!plan_->layout() || !plan_->packer() || plan_->layout()->low() < 0)) plan_ = PlanRef();
  }
  if (plan_) gathered_ = Lease(runtime().pool, 2 * std::max(plan_->layout()->high(), batch * extent_));
}

void MpiReduction::combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept {
  if (contiguous_) {
    real.Reduce_local(in, inout, static_cast<int>(bytes / element_bytes), type_, op_);
    return;
  }
  std::byte* operands = gathered_.data();
  std::byte* results = operands + std::max(plan_->layout()->high(), batch * extent_);
  const Packer& packer = *plan_->packer();
  for (std::int64_t first = 0; first < bytes; first += batch * element_bytes) {
    const std::int64_t here = std::min(bytes - first, batch * element_bytes);
    packer.unpack_range(operands, in + first, 0, here);
    packer.unpack_range(results, inout + first, 0, here);
    real.Reduce_local(operands, results, static_cast<int>(here / element_bytes), type_, op_);
    packer.pack_range(inout + first, results, 0, here);
  }
}

}  // namespace bestride
