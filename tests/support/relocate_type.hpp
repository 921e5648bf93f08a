// SPDX-License-Identifier: Apache-2.0
#pragma once
// A type with the same signature at other displacements, which the receiver of a message may use.
#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"
#include "tests/support/type_map.hpp"

namespace bestride::test {

/// A type of this signature in which no byte occurs twice, even if several elements follow each other. It has gaps and
/// a random order.
TypeExpression relocate_type(Random& random, const std::vector<SignatureRun>& signature);

}  // namespace bestride::test
