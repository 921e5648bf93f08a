// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random valid types with all combiners, biased towards cases that break datatype engines: zero counts and lengths,
// negative strides and lower bounds, extents smaller than the data, pair types, unaligned displacements, deep nesting.
#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {

struct TypeLimits {
  int depth = 5;                              ///< constructors on the longest path
  std::int64_t bytes = 4096;                  ///< packed
  std::int64_t span = std::int64_t{1} << 20;  ///< from the lowest to the highest byte, bounds included
  bool same_leaf = false;                     ///< only one predefined type
};

/// Always valid (facts_of() has a value) and within the limits. The same seed gives the same type.
TypeExpression random_type(Random& random, const TypeLimits& limits);

/// Mostly small types; one in eight has tens of KiB, one in a hundred a few MiB.
TypeLimits random_limits(Random& random);

}  // namespace bestride::test
