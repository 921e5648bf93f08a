// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduces a type that fails a test to a small one that still fails it.
#include <functional>

#include "tests/support/expressions.hpp"

namespace bestride::test {

/// Greedy: replaces subtrees by their children or by a byte, removes list entries, and moves numbers towards zero, as
/// long as the candidate is a valid type and `fails` returns true. Calls `fails` at most `budget` times.
TypeExpression shrink(TypeExpression type, const std::function<bool(const TypeExpression&)>& fails, int budget = 3000);

}  // namespace bestride::test
