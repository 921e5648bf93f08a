// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/reduction_order.hpp"

#include <algorithm>
#include <initializer_list>

#include "interpose/collectives/number_operations.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

template <class Handle>
bool is_one_of(Handle handle, std::initializer_list<Handle> handles) noexcept {
  for (Handle each : handles)
    if (handle == each) return true;
  return false;
}

}  // namespace

Reassociation reassociation_of(MPI_Op op, MPI_Datatype type) noexcept {
  const Predefined* known = predefined(type);
  const bool pair = known ? known->kind == NumberKind::pair : is_pair_with_gaps(type);
  if (is_one_of(op, {MPI_MINLOC, MPI_MAXLOC})) {
    if (!pair) return Reassociation::by_mpi;
    return is_one_of(type, {MPI_2INT, MPI_2INTEGER, MPI_SHORT_INT, MPI_LONG_INT}) ? Reassociation::in_any_order
                                                                                  : Reassociation::in_one_order;
  }
  const auto is = [known](std::initializer_list<NumberKind> kinds) {
    return known && std::find(kinds.begin(), kinds.end(), known->kind) != kinds.end() ? Reassociation::in_any_order
                                                                                      : Reassociation::by_mpi;
  };
  if (is_one_of(op, {MPI_MAX, MPI_MIN})) {
    if (floating_extreme(op, type)) return Reassociation::in_any_order_if_ordinary;
    return is({NumberKind::floating}) == Reassociation::in_any_order ? Reassociation::in_one_order
                                                                     : is({NumberKind::integer});
  }
  if (is_one_of(op, {MPI_LAND, MPI_LOR, MPI_LXOR})) return is({NumberKind::integer, NumberKind::logical});
  if (is_one_of(op, {MPI_BAND, MPI_BOR, MPI_BXOR})) return is({NumberKind::integer, NumberKind::bytes});
  if (is_one_of(op, {MPI_SUM, MPI_PROD})) {
    if (is({NumberKind::floating, NumberKind::complex}) == Reassociation::in_any_order)
      return Reassociation::in_one_order;
    return is({NumberKind::integer});
  }
  return runtime().ops.commutative(op) ? Reassociation::in_one_order_in_the_call : Reassociation::by_mpi;
}

}  // namespace bestride::inline interpose
