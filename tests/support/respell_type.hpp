// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same type map built by other constructors.
#include <optional>

#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {

/// Same type map (order included), same lower bound, same extent; other constructors, at every level of the tree.
TypeExpression respell_type(Random& random, const TypeExpression& type);

/// `count` elements of the type as one element of a type that is spelled differently, bounds included:
/// contiguous(count, type).
TypeExpression respell_counted(Random& random, const TypeExpression& type, std::int64_t count);

}  // namespace bestride::test
