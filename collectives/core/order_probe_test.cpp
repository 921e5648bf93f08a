// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/order_probe.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "collectives/testing/test_sums.hpp"

namespace bestride::inline collectives {
namespace {

constexpr int sums = 3000;

/// What all ranks contribute.
template <class Number>
std::vector<std::vector<Number>> probes(int ranks, int trial = 0) {
  std::vector<std::vector<Number>> of(static_cast<std::size_t>(ranks), std::vector<Number>(sums));
  for (int rank = 0; rank < ranks; ++rank)
    fill_order_probe(of[static_cast<std::size_t>(rank)].data(), sums, rank, ranks, trial);
  return of;
}

/// The share of sums that have other bits if rank `order[i]` takes the place of rank i, or in another tree.
template <class Number>
double share_of_different(int ranks, const std::vector<int>& order, ReductionTree::Form form) {
  const auto of = probes<Number>(ranks);
  const ReductionTree balanced(ReductionTree::Form::balanced, ranks), other(form, ranks);
  int different = 0;
  for (std::size_t i = 0; i < sums; ++i) {
    std::vector<Number> here, there;
    for (int rank = 0; rank < ranks; ++rank) {
      here.push_back(of[static_cast<std::size_t>(rank)][i]);
      there.push_back(of[static_cast<std::size_t>(order[static_cast<std::size_t>(rank)])][i]);
    }
    different += tree_sum(here, balanced, 0, ranks) != tree_sum(there, other, 0, ranks);
  }
  return static_cast<double>(different) / sums;
}

template <class Number>
void check() {
  const auto balanced = ReductionTree::Form::balanced, paired = ReductionTree::Form::paired;
  for (const int ranks : {3, 4, 5, 7, 8, 13, 20, 32, 36, 64, 128}) {
    std::vector<int> same(static_cast<std::size_t>(ranks));
    std::iota(same.begin(), same.end(), 0);
    EXPECT_EQ(share_of_different<Number>(ranks, same, balanced), 0);
    if (ranks == 5 || ranks == 13 || ranks == 20 || ranks == 36) {
      EXPECT_GT(share_of_different<Number>(ranks, same, paired), 0.2) << ranks;
    }
    // Two ranks change places, at both ends and in the middle.
    for (const int first : {1, (ranks / 2 - 1) | 1, (ranks - 3) | 1}) {
      if (first + 1 >= ranks) continue;
      std::vector<int> swapped = same;
      std::swap(swapped[static_cast<std::size_t>(first)], swapped[static_cast<std::size_t>(first) + 1]);
      EXPECT_GT(share_of_different<Number>(ranks, swapped, balanced), 0.08) << ranks << " ranks, from " << first;
    }
    std::vector<int> rotated = same;
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    EXPECT_GT(share_of_different<Number>(ranks, rotated, balanced), 0.3) << ranks;
  }
}

TEST(OrderProbe, ShowsTheOrderOfDoubles) { check<double>(); }
TEST(OrderProbe, ShowsTheOrderOfFloats) { check<float>(); }

TEST(OrderProbe, HasOtherNumbersInEachTrial) { EXPECT_NE(probes<double>(4, 0), probes<double>(4, 1)); }

}  // namespace
}  // namespace bestride::inline collectives
