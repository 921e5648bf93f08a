// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/predefined.hpp"

#include <algorithm>
#include <initializer_list>
#include <new>

#include "interpose/back/calls.hpp"
#include "interpose/back/handle_table.hpp"

namespace bestride {
namespace {

HandleTable<MPI_Datatype, Predefined>& table() noexcept {
  static auto* const one = new HandleTable<MPI_Datatype, Predefined>;
  return *one;
}

void add(MPI_Datatype type, NumberKind kind) noexcept {
  int size = 0;
  if (type == MPI_DATATYPE_NULL || real.Type_size(type, &size) != MPI_SUCCESS || size <= 0) return;
  MPI_Aint lower = 0, extent = 0;
  if (real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || lower != 0 || extent != size) return;
  auto* made = new (std::nothrow) Predefined{kind, size};
  Predefined* replaced = nullptr;
  if (!made) return;
  if (!table().insert(type, made, &replaced)) delete made;
  delete replaced;
}

bool is_one_of(MPI_Op op, std::initializer_list<MPI_Op> ops) noexcept {
  for (MPI_Op each : ops)
    if (op == each) return true;
  return false;
}

}  // namespace

bool is_pair_with_gaps(MPI_Datatype type) noexcept {
  for (MPI_Datatype pair : {MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT})
    if (type == pair && type != MPI_DATATYPE_NULL) return true;
  return false;
}

const Predefined* predefined(MPI_Datatype type) noexcept { return table().find(type); }

void read_predefined() noexcept {
  for (MPI_Datatype type :
       {MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG,
        MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
        MPI_UINT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})
    add(type, NumberKind::integer);
  for (MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8}) add(type, NumberKind::floating);
  for (MPI_Datatype type : {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16,
                            MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX})
    add(type, NumberKind::complex);
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL}) add(type, NumberKind::logical);
  add(MPI_BYTE, NumberKind::bytes);
  for (MPI_Datatype type : {MPI_WCHAR, MPI_CHARACTER, MPI_PACKED}) add(type, NumberKind::text);
  for (MPI_Datatype type : {MPI_2INT, MPI_FLOAT_INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION}) add(type, NumberKind::pair);
}

Applied how_applied(MPI_Op op, MPI_Datatype type) noexcept {
  const Predefined* known = predefined(type);
  const bool pair = known ? known->kind == NumberKind::pair : is_pair_with_gaps(type);
  if (is_one_of(op, {MPI_MINLOC, MPI_MAXLOC})) return pair ? Applied::in_any_order : Applied::by_mpi;
  const auto is = [known](std::initializer_list<NumberKind> kinds) {
    return known && std::find(kinds.begin(), kinds.end(), known->kind) != kinds.end() ? Applied::in_any_order : Applied::by_mpi;
  };
  if (is_one_of(op, {MPI_MAX, MPI_MIN})) return is({NumberKind::integer, NumberKind::floating});
  if (is_one_of(op, {MPI_LAND, MPI_LOR, MPI_LXOR})) return is({NumberKind::integer, NumberKind::logical});
  if (is_one_of(op, {MPI_BAND, MPI_BOR, MPI_BXOR})) return is({NumberKind::integer, NumberKind::bytes});
  if (is_one_of(op, {MPI_SUM, MPI_PROD})) {
    if (is({NumberKind::floating, NumberKind::complex}) == Applied::in_any_order) return Applied::in_one_order;
    return is({NumberKind::integer});
  }
  if (is_one_of(op, {MPI_OP_NULL, MPI_REPLACE, MPI_NO_OP})) return Applied::by_mpi;
  int commutative = 0;
  return real.Op_commutative(op, &commutative) == MPI_SUCCESS && commutative ? Applied::in_one_order_in_the_call : Applied::by_mpi;
}

}  // namespace bestride
