// SPDX-License-Identifier: Apache-2.0
#include "model/topology.hpp"

#include <gtest/gtest.h>

namespace bestride {
namespace {

TEST(Topology, NumbersNodesByTheirLowestRank) {
  const int identities[] = {7, 3, 7, 3, 9};
  const Topology topology(identities);
  EXPECT_EQ(topology.ranks(), 5);
  EXPECT_EQ(topology.nodes(), 3);
  EXPECT_EQ(topology.node_of(1), 1);
  EXPECT_EQ(topology.local_rank_of(2), 1);
  EXPECT_EQ(std::vector<int>(topology.ranks_on(0).begin(), topology.ranks_on(0).end()), (std::vector<int>{0, 2}));
  EXPECT_EQ(topology.most_on_a_node(), 2);
  EXPECT_EQ(topology.least_on_a_node(), 1);
}

TEST(Topology, OfNoRanksHasNoNodes) { EXPECT_EQ(Topology().nodes(), 0); }

}  // namespace
}  // namespace bestride
