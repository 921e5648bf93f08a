// SPDX-License-Identifier: Apache-2.0
#include "model/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace bestride::inline model {
namespace {

using testing::ElementsAre;

TEST(Topology, NumbersNodesByTheirLowestRank) {
  const int identities[] = {7, 3, 7, 3, 9};
  const Topology topology(identities);
  EXPECT_EQ(topology.ranks(), 5);
  EXPECT_EQ(topology.nodes(), 3);
  EXPECT_EQ(topology.node_of(1), 1);
  EXPECT_EQ(topology.local_rank_of(2), 1);
  EXPECT_THAT(topology.ranks_on(0), ElementsAre(0, 2));
  EXPECT_EQ(topology.max_ranks_per_node(), 2);
  EXPECT_EQ(topology.min_ranks_per_node(), 1);
}

TEST(Topology, OfNoRanksHasNoNodes) {
  EXPECT_EQ(Topology().nodes(), 0);
  EXPECT_EQ(Topology(std::span<const RankLocation>()).groups(), 0);
  EXPECT_EQ(Topology().restricted({})->ranks(), 0);
}

TEST(Topology, UnknownValues) {
  const int identities[] = {0, 0, 1, 1};
  const Topology topology(identities);
  EXPECT_EQ(topology.groups(), 1);
  EXPECT_EQ(topology.domains(), topology.by_node());
  EXPECT_EQ(topology.cores().parts(), 4);
}

TEST(Topology, Levels) {
  // Domain and core numbers are unique only within their node.
  const RankLocation places[] = {{0, 5, 0, 0},
                                 {0, 5, 0, 0},
                                 {0, 5, 1, 8},
                                 {1, 5, 0, 0},
                                 {1, 5, RankLocation::unknown, RankLocation::unknown},
                                 {1, 5, RankLocation::unknown, RankLocation::unknown},
                                 {2, 6, 0, 0}};
  const Topology topology{std::span<const RankLocation>(places)};
  EXPECT_EQ(topology.nodes(), 3);
  EXPECT_EQ(topology.groups(), 2);
  EXPECT_THAT(topology.nodes_in(0), ElementsAre(0, 1));
  EXPECT_EQ(topology.group_of(2), 1);
  EXPECT_EQ(topology.domains().parts(), 5);
  EXPECT_THAT(topology.domains().members(3), ElementsAre(4, 5));
  EXPECT_EQ(topology.cores().parts(), 6);
  EXPECT_THAT(topology.cores().members(0), ElementsAre(0, 1));
}

TEST(Topology, Placements) {
  const auto placement = [](std::vector<int> identities) { return Topology(identities).placement(); };
  EXPECT_EQ(placement({1, 1, 1}), Placement::block);
  EXPECT_EQ(placement({1, 2, 3}), Placement::block);
  EXPECT_EQ(placement({4, 4, 4, 2}), Placement::block);
  EXPECT_EQ(placement({4, 2, 4, 2}), Placement::cyclic);
  EXPECT_EQ(placement({4, 2, 4, 2, 4}), Placement::cyclic);
  EXPECT_EQ(placement({4, 2, 2, 4}), Placement::irregular);
  EXPECT_EQ(placement({4, 2, 4, 2, 2}), Placement::irregular);
}

TEST(Topology, RestrictedToRanksInAnotherOrder) {
  const RankLocation places[] = {{0, 0, 0, 0}, {0, 0, 1, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}, {2, 1, 0, 0}};
  const int ranks[] = {4, 3, 1, 2};
  const auto part = Topology(std::span<const RankLocation>(places)).restricted(ranks);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->nodes(), 3);
  EXPECT_EQ(part->node_of(0), 0);
  EXPECT_THAT(part->ranks_on(1), ElementsAre(1, 3));
  EXPECT_EQ(part->groups(), 2);
  EXPECT_THAT(part->nodes_in(0), ElementsAre(0, 1));
}

TEST(Topology, RestrictedToAnUnknownRank) {
  const int identities[] = {0, 1};
  for (const int stranger : {-32766, -1, 2}) EXPECT_FALSE(Topology(identities).restricted(std::span(&stranger, 1)));
}

/// Every rank is in its part, at its position, in ascending order; parts are numbered by their lowest rank.
void expect_whole(const Partition& partition) {
  int seen = 0;
  int largest = 0;
  int smallest = partition.ranks();
  for (int part = 0; part < partition.parts(); ++part) {
    const auto members = partition.members(part);
    ASSERT_FALSE(members.empty());
    ASSERT_TRUE(std::is_sorted(members.begin(), members.end()));
    if (part > 0) {
      ASSERT_LT(partition.members(part - 1)[0], members[0]);
    }
    for (std::size_t place = 0; place < members.size(); ++place, ++seen) {
      ASSERT_EQ(partition.part_of(members[place]), part);
      ASSERT_EQ(partition.place_of(members[place]), static_cast<int>(place));
    }
    largest = std::max(largest, static_cast<int>(members.size()));
    smallest = std::min(smallest, static_cast<int>(members.size()));
  }
  ASSERT_EQ(seen, partition.ranks());
  ASSERT_EQ(partition.largest(), largest);
  ASSERT_EQ(partition.smallest(), smallest);
}

TEST(Topology, RandomPlacementsKeepTheInvariants) {
  std::mt19937 random(20240517);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    const int ranks = 1 + below(40);
    const int nodes = 1 + below(8);
    std::vector<RankLocation> places;
    for (int rank = 0; rank < ranks; ++rank) {
      const int node = below(nodes) * 1000003;
      places.push_back({node, node % 3, below(3) - 1, below(4) - 1});
    }
    const Topology topology{std::span<const RankLocation>(places)};
    ASSERT_EQ(topology.ranks(), ranks);
    for (const Partition* level : {&topology.cores(), &topology.domains(), &topology.by_node()}) expect_whole(*level);
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < a; ++b) {
        const auto& x = places[static_cast<std::size_t>(a)];
        const auto& y = places[static_cast<std::size_t>(b)];
        const bool node = x.node == y.node;
        const bool domain = node && x.domain == y.domain;
        ASSERT_EQ(topology.node_of(a) == topology.node_of(b), node);
        ASSERT_EQ(topology.domains().part_of(a) == topology.domains().part_of(b), domain);
        ASSERT_EQ(topology.cores().part_of(a) == topology.cores().part_of(b),
                  domain && x.core == y.core && x.core != RankLocation::unknown);
        ASSERT_EQ(topology.group_of(topology.node_of(a)) == topology.group_of(topology.node_of(b)), x.group == y.group);
      }

    // Restricting gives the same result as making the topology from the restricted places, and can be done in steps.
    std::vector<int> chosen(static_cast<std::size_t>(ranks));
    std::iota(chosen.begin(), chosen.end(), 0);
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(static_cast<std::size_t>(1 + below(ranks)));
    std::vector<RankLocation> of_chosen;
    of_chosen.reserve(chosen.size());
    for (const int rank : chosen) of_chosen.push_back(places[static_cast<std::size_t>(rank)]);
    const Topology direct{std::span<const RankLocation>(of_chosen)};
    const auto part = topology.restricted(chosen);
    ASSERT_TRUE(part);
    ASSERT_EQ(part->by_node(), direct.by_node());
    ASSERT_EQ(part->domains(), direct.domains());
    ASSERT_EQ(part->cores(), direct.cores());
    ASSERT_EQ(part->placement(), direct.placement());
    ASSERT_EQ(part->groups(), direct.groups());
    for (int node = 0; node < part->nodes(); ++node) ASSERT_EQ(part->group_of(node), direct.group_of(node));
    std::vector<int> back(chosen.size());
    std::iota(back.rbegin(), back.rend(), 0);
    ASSERT_EQ(part->restricted(back)->restricted(back)->by_node(), part->by_node());
  }
}

}  // namespace
}  // namespace bestride::inline model
