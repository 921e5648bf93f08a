// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short names for building TypeExpressions in code, and queries that the generators need.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "datatype/expression.hpp"

namespace bestride::test {

using bestride::TypeExpression;
using Combiner = TypeExpression::Combiner;
using Distribution = TypeExpression::Distribution;
using Numbers = std::vector<std::int64_t>;

inline TypeExpression make(Combiner combiner, Numbers integers, Numbers a, Numbers b,
                           std::vector<TypeExpression> children) {
  TypeExpression type;
  type.combiner = combiner;
  type.integers = std::move(integers);
  type.a = std::move(a);
  type.b = std::move(b);
  type.children = std::move(children);
  return type;
}
inline TypeExpression named(std::string_view name) {
  TypeExpression type;
  type.name = name;
  return type;
}
inline TypeExpression contiguous(std::int64_t n, TypeExpression t) {
  return make(Combiner::contiguous, {n}, {}, {}, {std::move(t)});
}
inline TypeExpression vector(std::int64_t n, std::int64_t length, std::int64_t stride, TypeExpression t) {
  return make(Combiner::vector, {n, length, stride}, {}, {}, {std::move(t)});
}
inline TypeExpression hvector(std::int64_t n, std::int64_t length, std::int64_t bytes, TypeExpression t) {
  return make(Combiner::hvector, {n, length, bytes}, {}, {}, {std::move(t)});
}
inline TypeExpression indexed(Numbers lengths, Numbers at, TypeExpression t) {
  return make(Combiner::indexed, {}, std::move(lengths), std::move(at), {std::move(t)});
}
inline TypeExpression hindexed(Numbers lengths, Numbers bytes, TypeExpression t) {
  return make(Combiner::hindexed, {}, std::move(lengths), std::move(bytes), {std::move(t)});
}
inline TypeExpression indexed_block(std::int64_t length, Numbers at, TypeExpression t) {
  return make(Combiner::indexed_block, {length}, std::move(at), {}, {std::move(t)});
}
inline TypeExpression hindexed_block(std::int64_t length, Numbers bytes, TypeExpression t) {
  return make(Combiner::hindexed_block, {length}, std::move(bytes), {}, {std::move(t)});
}
inline TypeExpression structure(Numbers lengths, Numbers bytes, std::vector<TypeExpression> types) {
  return make(Combiner::structure, {}, std::move(lengths), std::move(bytes), std::move(types));
}
inline TypeExpression subarray(Numbers sizes, Numbers subsizes, Numbers starts, bool fortran_order, TypeExpression t) {
  TypeExpression type = make(Combiner::subarray, {}, std::move(sizes), std::move(subsizes), {std::move(t)});
  type.c = std::move(starts);
  type.fortran_order = fortran_order;
  return type;
}
inline TypeExpression resized(std::int64_t lower, std::int64_t extent, TypeExpression t) {
  return make(Combiner::resized, {lower, extent}, {}, {}, {std::move(t)});
}
inline TypeExpression dup(TypeExpression t) { return make(Combiner::dup, {}, {}, {}, {std::move(t)}); }

/// Properties of a type, in bytes.
struct Facts {
  std::int64_t lower = 0, extent = 0;  ///< MPI's bounds
  std::int64_t low = 0, high = 0;      ///< bytes touched, [low, high)
  std::int64_t size = 0;               ///< packed
};
/// nullopt if the expression is not a valid type.
inline std::optional<Facts> facts_of(const TypeExpression& type) {
  const auto evaluated = evaluate(type);
  if (!evaluated) return std::nullopt;
  Facts facts{evaluated->lower_bound, evaluated->extent};
  if (const Node* node = evaluated->bytes.node.get()) {
    facts.low = evaluated->bytes.offset + node->low;
    facts.high = evaluated->bytes.offset + node->high;
    facts.size = node->size;
  }
  return facts;
}

/// Parses a type in the text of a test. Ends the program if it is invalid.
TypeExpression type_from(std::string_view text);

}  // namespace bestride::test
