// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds the same type map by other constructors.
#include <optional>

#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {

/// A type with the same type map (including the order), lower bound and extent, but other constructors at every level.
TypeExpression respell_type(Random& random, const TypeExpression& type);

/// A different spelling of contiguous(count, type), with the same bounds: one element of it equals `count` elements of
/// `type`.
TypeExpression respell_counted(Random& random, const TypeExpression& type, std::int64_t count);

}  // namespace bestride::test
