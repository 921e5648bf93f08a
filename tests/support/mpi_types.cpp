// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mpi_types.hpp"

#include <cstdio>
#include <cstdlib>
#include <limits>

namespace bestride::test {
namespace {

struct NamedHandle {
  std::string_view name;
  MPI_Datatype type;
};

const NamedHandle handles[] = {
    {"byte", MPI_BYTE},
    {"packed", MPI_PACKED},
    {"char", MPI_CHAR},
    {"signed_char", MPI_SIGNED_CHAR},
    {"unsigned_char", MPI_UNSIGNED_CHAR},
    {"bool", MPI_C_BOOL},
    {"wchar", MPI_WCHAR},
    {"short", MPI_SHORT},
    {"unsigned_short", MPI_UNSIGNED_SHORT},
    {"int", MPI_INT},
    {"unsigned", MPI_UNSIGNED},
    {"long", MPI_LONG},
    {"unsigned_long", MPI_UNSIGNED_LONG},
    {"long_long", MPI_LONG_LONG},
    {"unsigned_long_long", MPI_UNSIGNED_LONG_LONG},
    {"int8", MPI_INT8_T},
    {"int16", MPI_INT16_T},
    {"int32", MPI_INT32_T},
    {"int64", MPI_INT64_T},
    {"uint8", MPI_UINT8_T},
    {"uint16", MPI_UINT16_T},
    {"uint32", MPI_UINT32_T},
    {"uint64", MPI_UINT64_T},
    {"aint", MPI_AINT},
    {"count", MPI_COUNT},
    {"offset", MPI_OFFSET},
    {"float", MPI_FLOAT},
    {"double", MPI_DOUBLE},
    {"long_double", MPI_LONG_DOUBLE},
    {"complex", MPI_C_FLOAT_COMPLEX},
    {"double_complex", MPI_C_DOUBLE_COMPLEX},
    {"long_double_complex", MPI_C_LONG_DOUBLE_COMPLEX},
    {"float_int", MPI_FLOAT_INT},
    {"double_int", MPI_DOUBLE_INT},
    {"long_int", MPI_LONG_INT},
    {"short_int", MPI_SHORT_INT},
    {"2int", MPI_2INT},
    {"long_double_int", MPI_LONG_DOUBLE_INT},
};

[[noreturn]] void give_up(const TypeExpression& type, const char* what) {
  std::fprintf(stderr, "cannot build %s: %s\n", type.text().c_str(), what);
  std::abort();
}

/// A list of numbers in the type that MPI's constructor of this kind takes.
template <class To>
std::vector<To> as(const TypeExpression& type, const Numbers& from) {
  std::vector<To> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] > std::numeric_limits<To>::max() || from[i] < std::numeric_limits<To>::min())
      give_up(type, "number too large");
    to[i] = static_cast<To>(from[i]);
  }
  return to;
}

int distribution_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::none: return MPI_DISTRIBUTE_NONE;
    case Distribution::block: return MPI_DISTRIBUTE_BLOCK;
    default: return MPI_DISTRIBUTE_CYCLIC;
  }
}

template <class Number>
int construct_array(const TypeExpression& type, MPI_Datatype child, MPI_Datatype* result) {
  const int dimensions = static_cast<int>(type.a.size());
  const int order = type.fortran_order ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  const auto a = as<Number>(type, type.a);
  if (type.combiner == Combiner::subarray) {
    const auto b = as<Number>(type, type.b), c = as<Number>(type, type.c);
    if constexpr (std::is_same_v<Number, int>)
      return MPI_Type_create_subarray(dimensions, a.data(), b.data(), c.data(), order, child, result);
    else
      return MPI_Type_create_subarray_c(dimensions, a.data(), b.data(), c.data(), order, child, result);
  }
  std::vector<int> distributions, arguments;
  for (const Distribution one : type.distributions) distributions.push_back(distribution_of(one));
  for (const std::int64_t one : type.b)
    arguments.push_back(one == TypeExpression::default_argument ? MPI_DISTRIBUTE_DFLT_DARG : static_cast<int>(one));
  const auto processes = as<int>(type, type.c);
  const int size = static_cast<int>(type.integers[0]), rank = static_cast<int>(type.integers[1]);
  if constexpr (std::is_same_v<Number, int>)
    return MPI_Type_create_darray(size, rank, dimensions, a.data(), distributions.data(), arguments.data(),
                                  processes.data(), order, child, result);
  else
    return MPI_Type_create_darray_c(size, rank, dimensions, a.data(), distributions.data(), arguments.data(),
                                    processes.data(), order, child, result);
}

int construct(const TypeExpression& type, const std::vector<MPI_Datatype>& children, MPI_Datatype* result) {
  const MPI_Datatype child = children.empty() ? MPI_DATATYPE_NULL : children[0];
  const auto ints = as<int>(type, type.integers.size() < 3 || type.combiner == Combiner::vector
                                      ? type.integers
                                      : Numbers(type.integers.begin(), type.integers.begin() + 2));
  switch (type.combiner) {
    case Combiner::contiguous: return MPI_Type_contiguous(ints[0], child, result);
    case Combiner::vector: return MPI_Type_vector(ints[0], ints[1], ints[2], child, result);
    case Combiner::hvector: return MPI_Type_create_hvector(ints[0], ints[1], type.integers[2], child, result);
    case Combiner::indexed:
      return MPI_Type_indexed(static_cast<int>(type.a.size()), as<int>(type, type.a).data(),
                              as<int>(type, type.b).data(), child, result);
    case Combiner::hindexed:
      return MPI_Type_create_hindexed(static_cast<int>(type.a.size()), as<int>(type, type.a).data(),
                                      as<MPI_Aint>(type, type.b).data(), child, result);
    case Combiner::indexed_block:
      return MPI_Type_create_indexed_block(static_cast<int>(type.a.size()), ints[0], as<int>(type, type.a).data(),
                                           child, result);
    case Combiner::hindexed_block:
      return MPI_Type_create_hindexed_block(static_cast<int>(type.a.size()), ints[0], as<MPI_Aint>(type, type.a).data(),
                                            child, result);
    case Combiner::structure:
      return MPI_Type_create_struct(static_cast<int>(type.a.size()), as<int>(type, type.a).data(),
                                    as<MPI_Aint>(type, type.b).data(), children.data(), result);
    case Combiner::subarray:
    case Combiner::darray: return construct_array<int>(type, child, result);
    default: return MPI_Type_dup(child, result);
  }
}

int construct_large(const TypeExpression& type, const std::vector<MPI_Datatype>& children, MPI_Datatype* result) {
  const MPI_Datatype child = children.empty() ? MPI_DATATYPE_NULL : children[0];
  const auto n = as<MPI_Count>(type, type.integers), a = as<MPI_Count>(type, type.a), b = as<MPI_Count>(type, type.b);
  const MPI_Count length = static_cast<MPI_Count>(type.a.size());
  switch (type.combiner) {
    case Combiner::contiguous: return MPI_Type_contiguous_c(n[0], child, result);
    case Combiner::vector: return MPI_Type_vector_c(n[0], n[1], n[2], child, result);
    case Combiner::hvector: return MPI_Type_create_hvector_c(n[0], n[1], n[2], child, result);
    case Combiner::indexed: return MPI_Type_indexed_c(length, a.data(), b.data(), child, result);
    case Combiner::hindexed: return MPI_Type_create_hindexed_c(length, a.data(), b.data(), child, result);
    case Combiner::indexed_block: return MPI_Type_create_indexed_block_c(length, n[0], a.data(), child, result);
    case Combiner::hindexed_block: return MPI_Type_create_hindexed_block_c(length, n[0], a.data(), child, result);
    case Combiner::structure: return MPI_Type_create_struct_c(length, a.data(), b.data(), children.data(), result);
    case Combiner::subarray:
    case Combiner::darray: return construct_array<MPI_Count>(type, child, result);
    case Combiner::resized: return MPI_Type_create_resized_c(child, n[0], n[1], result);
    default: return MPI_Type_dup(child, result);
  }
}

}  // namespace

MPI_Datatype predefined(std::string_view name) {
  for (const NamedHandle& handle : handles)
    if (handle.name == name) return handle.type;
  std::fprintf(stderr, "no MPI type of the name %.*s\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

MPI_Datatype build_type(const TypeExpression& type, Constructors constructors) {
  if (type.combiner == Combiner::named) {
    // Predefined types cannot be freed; a duplicate can, and has the same map.
    MPI_Datatype copy = MPI_DATATYPE_NULL;
    MPI_Type_dup(predefined(type.name), &copy);
    return copy;
  }
  std::vector<MPI_Datatype> children;
  for (const TypeExpression& child : type.children)
    children.push_back(child.combiner == Combiner::named ? predefined(child.name) : build_type(child, constructors));
  MPI_Datatype result = MPI_DATATYPE_NULL;
  int failed = MPI_SUCCESS;
  if (constructors == Constructors::large)
    failed = construct_large(type, children, &result);
  else if (type.combiner == Combiner::resized)
    failed = MPI_Type_create_resized(children[0], type.integers[0], type.integers[1], &result);
  else
    failed = construct(type, children, &result);
  if (failed != MPI_SUCCESS) give_up(type, "the MPI library refuses");
  for (std::size_t i = 0; i < children.size(); ++i)
    if (type.children[i].combiner != Combiner::named) MPI_Type_free(&children[i]);
  return result;
}

}  // namespace bestride::test
