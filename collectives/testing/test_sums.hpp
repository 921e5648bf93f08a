// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums for the tests of reductions, and their expected results.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/core/reduction.hpp"

namespace bestride::inline collectives {

template <class Number>
struct Sum final : Reduction {
  explicit Sum(const ReductionTree& order) {
    element_bytes = sizeof(Number);
    tree = order;
  }
  void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept override {
    for (std::int64_t i = 0; i < bytes; i += static_cast<std::int64_t>(sizeof(Number))) {
      Number a, b;
      std::memcpy(&a, in + i, sizeof a);
      std::memcpy(&b, inout + i, sizeof b);
      b = static_cast<Number>(a + b);
      std::memcpy(inout + i, &b, sizeof b);
    }
  }
};

template <class Number>
Number tree_sum(const std::vector<Number>& values, const ReductionTree& tree, int first, int last) {
  if (last - first == 1) return values[static_cast<std::size_t>(first)];
  const int middle = tree.cut(first, last);
  return tree_sum(values, tree, first, middle) + tree_sum(values, tree, middle, last);
}

/// Floating-point numbers of such different magnitudes that another order of addition gives other bits.
template <class Number>
Number random_summand(std::mt19937_64& random) {
  const double number = static_cast<double>(random() % 1000003);
  return static_cast<Number>(std::ldexp(number, static_cast<int>(random() % (std::is_integral_v<Number> ? 1 : 40))));
}

}  // namespace bestride::inline collectives
