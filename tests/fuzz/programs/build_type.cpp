// SPDX-License-Identifier: Apache-2.0
// Builds the datatype of an expression by recorded MPI calls.
#include "tests/fuzz/programs/types.hpp"
#include "tests/support/mpi_types.hpp"

namespace bestride::fuzz {
namespace {

using test::Combiner;
using test::Distribution;
using test::Numbers;

template <class To>
std::vector<To> as(const Numbers& from) {
  return {from.begin(), from.end()};
}

int construct_array(Caller& caller, const TypeExpression& type, int child, New result) {
  const int dimensions = static_cast<int>(type.a.size());
  const int order = type.fortran_order ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  if (type.combiner == Combiner::subarray)
    return CALL(caller, Type_create_subarray, dimensions, as<int>(type.a), as<int>(type.b), as<int>(type.c), order,
                child, result);
  std::vector<int> distributions, arguments;
  for (const Distribution one : type.distributions)
    distributions.push_back(one == Distribution::none    ? MPI_DISTRIBUTE_NONE
                            : one == Distribution::block ? MPI_DISTRIBUTE_BLOCK
                                                         : MPI_DISTRIBUTE_CYCLIC);
  for (const std::int64_t one : type.b)
    arguments.push_back(one == TypeExpression::default_argument ? MPI_DISTRIBUTE_DFLT_DARG : static_cast<int>(one));
  return CALL(caller, Type_create_darray, static_cast<int>(type.integers[0]), static_cast<int>(type.integers[1]),
              dimensions, as<int>(type.a), distributions, arguments, as<int>(type.c), order, child, result);
}

int construct(Caller& caller, const TypeExpression& type, const std::vector<int>& children, New result) {
  const int child = children.empty() ? MPI_DATATYPE_NULL : children[0], length = static_cast<int>(type.a.size());
  const auto n = as<int>(type.integers);
  switch (type.combiner) {
    case Combiner::contiguous: return CALL(caller, Type_contiguous, n[0], child, result);
    case Combiner::vector: return CALL(caller, Type_vector, n[0], n[1], n[2], child, result);
    case Combiner::hvector:
      return CALL(caller, Type_create_hvector, n[0], n[1], static_cast<MPI_Aint>(type.integers[2]), child, result);
    case Combiner::indexed: return CALL(caller, Type_indexed, length, as<int>(type.a), as<int>(type.b), child, result);
    case Combiner::hindexed:
      return CALL(caller, Type_create_hindexed, length, as<int>(type.a), as<MPI_Aint>(type.b), child, result);
    case Combiner::indexed_block:
      return CALL(caller, Type_create_indexed_block, length, n[0], as<int>(type.a), child, result);
    case Combiner::hindexed_block:
      return CALL(caller, Type_create_hindexed_block, length, n[0], as<MPI_Aint>(type.a), child, result);
    case Combiner::structure:
      return CALL(caller, Type_create_struct, length, as<int>(type.a), as<MPI_Aint>(type.b), children, result);
    case Combiner::subarray:
    case Combiner::darray: return construct_array(caller, type, child, result);
    case Combiner::resized:
      return CALL(caller, Type_create_resized, child, static_cast<MPI_Aint>(type.integers[0]),
                  static_cast<MPI_Aint>(type.integers[1]), result);
    default: return CALL(caller, Type_dup, child, result);
  }
}

constexpr int max_alive = 300;  // well below 512, because types freed while a request uses them are not counted

int derived_parts(const TypeExpression& type) {
  int n = type.combiner == Combiner::named ? 0 : 1;
  for (const TypeExpression& child : type.children) n += derived_parts(child);
  return n;
}

/// The same type map by two derived types: a struct of predefined types, and MPI_Type_create_resized.
TypeExpression flattened(const TypeExpression& type) {
  const auto map = test::type_map(type);
  const auto facts = test::facts_of(type);
  Numbers lengths, bytes;
  std::vector<TypeExpression> leaves;
  for (const test::Leaf& leaf : *map) {
    lengths.push_back(1);
    bytes.push_back(leaf.offset);
    leaves.push_back(test::named(leaf.type->name));
  }
  return test::resized(facts->lower, facts->extent, test::structure(lengths, bytes, leaves));
}

}  // namespace

Handle build(Caller& caller, const TypeExpression& type, bool commit, bool dup_named) {
  Handle result;
  if (type.combiner == Combiner::named) {
    result.h = test::predefined(type.name);
    if (!dup_named) return result;
    const int named = result.h;
    CALL(caller, Type_dup, named, New{&result.h, "t"});
    result.owned = true;
    result.parts = 1;
    ++caller.types_alive;
    return result;
  }
  // The parts are built below without `commit`, so this is decided once for the whole type.
  if (const int parts = derived_parts(type); commit && parts > 2 && caller.types_alive + parts > max_alive)
    return build(caller, flattened(type), commit);
  std::vector<Handle> parts;
  std::vector<int> children;
  for (const TypeExpression& child : type.children) {
    parts.push_back(build(caller, child, false));
    children.push_back(parts.back().h);
  }
  construct(caller, type, children, New{&result.h, "t"});
  result.owned = true;
  result.parts = 1;
  ++caller.types_alive;
  // A freed part stays alive as long as the whole type.
  for (Handle& part : parts) {
    result.parts += part.parts;
    caller.types_alive += part.parts;
    drop(caller, part);
  }
  if (commit) CALL(caller, Type_commit, Gone{&result.h});
  return result;
}

void drop(Caller& caller, Handle& handle) {
  if (handle.owned) {
    CALL(caller, Type_free, Gone{&handle.h});
    caller.types_alive -= handle.parts;
  }
  handle = {};
}

}  // namespace bestride::fuzz
