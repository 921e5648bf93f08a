// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same type signature at other addresses: a type that the receiver of a message may use.
#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"
#include "tests/support/type_map.hpp"

namespace bestride::test {

/// A type of this signature that names no byte twice, also when several elements follow each other. With gaps, in an
/// order of its own.
TypeExpression relocate_type(Random& random, const std::vector<SignatureRun>& signature);

}  // namespace bestride::test
