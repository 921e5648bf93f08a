// SPDX-License-Identifier: Apache-2.0
// Ranks of one job on this host, each a PeerDiscovery of this process that was told another rank.
#include "interpose/peers/peer_discovery.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace bestride;

class Peers : public testing::Test {
 protected:
  Peers() {
    for (const char* name : {"MPI_LOCALRANKID", "PMI_RANK", "PMIX_RANK"}) unsetenv(name);
    // The process id makes the job this test's own.
    setenv("SLURM_JOB_ID", std::to_string(::getpid()).c_str(), 1);
    setenv("SLURM_STEP_ID", "0", 1);
  }
  ~Peers() override {
    for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"}) unsetenv(name);
  }
  PeerDiscovery& rank(const ProcessorGroups& groups) {
    setenv("SLURM_PROCID", std::to_string(ranks.size()).c_str(), 1);
    ranks.push_back(std::make_unique<PeerDiscovery>());
    ranks.back()->announce(groups);
    return *ranks.back();
  }
  void confirm(int world_ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i]->confirm(static_cast<int>(i), world_ranks);
  }
  std::vector<std::unique_ptr<PeerDiscovery>> ranks;
};

TEST_F(Peers, TheDistanceIsThatOfTheNearestCommonGroup) {
  rank({.cache = 0, .domain = 0, .socket = 0});
  rank({.cache = 0, .domain = 0, .socket = 0});
  rank({.cache = 4, .domain = 0, .socket = 0});
  rank({.cache = 8, .domain = 8, .socket = 0});
  rank({.cache = 16, .domain = 16, .socket = 16});
  rank({});
  confirm(7);
  PeerDiscovery& first = *ranks[0];
  EXPECT_TRUE(first.knows_groups());
  for (int time = 0; time < 2; ++time) {  // asked, then remembered
    EXPECT_EQ(first.distance_to(1), Distance::cache);
    EXPECT_EQ(first.distance_to(2), Distance::domain);
    EXPECT_EQ(first.distance_to(3), Distance::socket);
    EXPECT_EQ(first.distance_to(4), Distance::node);
    EXPECT_EQ(first.distance_to(5), Distance::node) << "its groups are not known";
    EXPECT_EQ(first.distance_to(6), Distance::node) << "it has bound no name";
    EXPECT_EQ(first.distance_to(7), Distance::node) << "there is no such rank";
  }
  EXPECT_FALSE(ranks[5]->knows_groups());
  EXPECT_EQ(ranks[5]->distance_to(0), Distance::node);
  EXPECT_EQ(ranks[2]->distance_to(0), Distance::domain);
}

TEST_F(Peers, ARankThatIsAnotherOneThanExpectedWithdrawsAllNames) {
  rank({.cache = 0, .domain = 0, .socket = 0});
  rank({.cache = 0, .domain = 0, .socket = 0});
  ranks[0]->confirm(0, 2);
  ranks[1]->confirm(5, 6);
  EXPECT_FALSE(ranks[1]->knows_groups());
  EXPECT_EQ(ranks[0]->distance_to(1), Distance::node);
}

TEST_F(Peers, AnEndedRankIsFar) {
  rank({.cache = 0, .domain = 0, .socket = 0});
  rank({.cache = 0, .domain = 0, .socket = 0});
  confirm(2);
  ranks.pop_back();
  EXPECT_EQ(ranks[0]->distance_to(1), Distance::node);
}

}  // namespace
