// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/predefined_types.hpp"

#include <initializer_list>
#include <mutex>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

constinit PredefinedSlot predefined_table[predefined_slots];

namespace {

constinit std::size_t used = 0;

void add(MPI_Datatype type, NumberKind kind) noexcept {
  int size = 0;
  if (type == MPI_DATATYPE_NULL || used + 1 >= predefined_slots || real.Type_size(type, &size) != MPI_SUCCESS ||
      size <= 0)
    return;
  MPI_Aint lower = 0, extent = 0;
  if (real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || lower != 0 || extent != size) return;
  std::size_t i = predefined_slot(type);
  while (!predefined_table[i].vacant() && predefined_table[i].type != type) i = (i + 1) % predefined_slots;
  if (!predefined_table[i].vacant()) return;  // an alias of another type: the first kind is kept
  predefined_table[i] = {type, {kind, size}};
  ++used;
}

void read() noexcept {
  for (MPI_Datatype type : {MPI_CHAR,
                            MPI_SIGNED_CHAR,
                            MPI_UNSIGNED_CHAR,
                            MPI_SHORT,
                            MPI_UNSIGNED_SHORT,
                            MPI_INT,
                            MPI_UNSIGNED,
                            MPI_LONG,
                            MPI_UNSIGNED_LONG,
                            MPI_LONG_LONG,
                            MPI_UNSIGNED_LONG_LONG,
                            MPI_INT8_T,
                            MPI_INT16_T,
                            MPI_INT32_T,
                            MPI_INT64_T,
                            MPI_UINT8_T,
                            MPI_UINT16_T,
                            MPI_UINT32_T,
                            MPI_UINT64_T,
                            MPI_AINT,
                            MPI_COUNT,
                            MPI_OFFSET,
                            MPI_INTEGER,
                            MPI_INTEGER1,
                            MPI_INTEGER2,
                            MPI_INTEGER4,
                            MPI_INTEGER8})
    add(type, NumberKind::integer);
  for (MPI_Datatype type :
       {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})
    add(type, NumberKind::floating);
  for (MPI_Datatype type :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
        MPI_COMPLEX8, MPI_COMPLEX16, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX})
    add(type, NumberKind::complex);
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL}) add(type, NumberKind::logical);
  add(MPI_BYTE, NumberKind::bytes);
  add(MPI_CHARACTER, NumberKind::character);
  for (MPI_Datatype type : {MPI_WCHAR, MPI_PACKED, MPI_REAL16, MPI_COMPLEX32}) add(type, NumberKind::other);
#ifdef MPI_INTEGER16  // optional; Open MPI 4 has no such macro
  add(MPI_INTEGER16, NumberKind::other);
#endif
#ifdef MPIX_C_FLOAT16
  add(MPIX_C_FLOAT16, NumberKind::other);
#endif
  for (MPI_Datatype type : {MPI_2INT, MPI_FLOAT_INT, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION})
    add(type, NumberKind::pair);
}

}  // namespace

bool is_pair_with_gaps(MPI_Datatype type) noexcept {
  for (MPI_Datatype pair : {MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT})
    if (type == pair && type != MPI_DATATYPE_NULL) return true;
  return false;
}

void for_each_predefined_number(void (*visit)(MPI_Datatype)) noexcept {
  for (const PredefinedSlot& slot : predefined_table)
    if (!slot.vacant() && slot.known.kind != NumberKind::other && slot.known.kind != NumberKind::pair) visit(slot.type);
}

void read_predefined() noexcept {
  static std::once_flag once;
  try {
    std::call_once(once, read);
  } catch (...) {
  }
}

}  // namespace bestride::inline interpose
