// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/op_registry.hpp"

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

constexpr bool commutes = true,
               does_not_commute = false;  // the table points to these two values, so nothing is allocated

}  // namespace

bool OpRegistry::commutative(MPI_Op op) const noexcept {
  if (op == MPI_OP_NULL) return false;
  if (const bool* known = table_.find(op)) return *known;
  // Other ranks may have the operation in their registries although this rank had no memory for it.
  int answer = 0;
  return incomplete_.load(std::memory_order_relaxed) && real.Op_commutative(op, &answer) == MPI_SUCCESS && answer;
}

void OpRegistry::made(MPI_Op op, bool commutative) noexcept {
  const bool* replaced = nullptr;
  if (!table_.insert(op, commutative ? &commutes : &does_not_commute, &replaced))
    incomplete_.store(true, std::memory_order_relaxed);
}

bool OpRegistry::remove(MPI_Op op, bool* commutative) noexcept {
  const bool* known = table_.remove(op);
  if (known) *commutative = *known;
  return known != nullptr;
}

}  // namespace bestride::inline interpose
