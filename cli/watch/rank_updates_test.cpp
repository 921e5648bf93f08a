// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/rank_updates.hpp"

#include <gtest/gtest.h>

#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline cli {
namespace {

RankSnapshot rank_on(const std::string& host, int number, std::uint64_t calls, bool partial = false) {
  RankSnapshot rank = SampleJob(1).ranks[0];
  rank.host = host, rank.pid = 100 + number, rank.world_rank = number, rank.world_size = 8;
  rank.remote = host != "here", rank.alive = true, rank.partial = partial;
  rank.threads[0].calls = calls;
  rank.executable = partial ? "" : "solver";
  rank.sites.resize(3);
  if (!partial) rank.sites[2].address = 64;
  return rank;
}

std::vector<RankSnapshot> ranks(std::initializer_list<RankSnapshot> all) { return all; }

TEST(RankUpdates, AreInTheOrderOfRanks) {
  UpdatedRanks updated =
      update_ranks({}, ranks({rank_on("here", 2, 1)}),
                   {{"b", 0, ranks({rank_on("b", 3, 1), rank_on("b", 0, 1)})}, {"a", 0, ranks({rank_on("a", 1, 1)})}});
  ASSERT_EQ(updated.ranks.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(updated.ranks[static_cast<std::size_t>(i)].world_rank, i);
}

TEST(RankUpdates, TakeFromBeforeWhatWasNotSentAgain) {
  UpdatedRanks first = update_ranks({}, {}, {{"a", 0, ranks({rank_on("a", 0, 5), rank_on("a", 1, 5)})}});
  UpdatedRanks second =
      update_ranks(std::move(first.ranks), {}, {{"a", 0, ranks({rank_on("a", 0, 6, true), rank_on("a", 1, 5, true)})}});
  ASSERT_EQ(second.ranks.size(), 2u);
  EXPECT_EQ(second.ranks[0].executable, "solver");
  EXPECT_EQ(second.ranks[0].sites[2].address, 64u);
  EXPECT_FALSE(second.ranks[1].partial);
  EXPECT_EQ(second.activities, (std::vector<Activity>{Activity::calling, Activity::none}));
}

TEST(RankUpdates, AHostThatDoesNotAnswerIsAsItWas) {
  UpdatedRanks first = update_ranks({}, ranks({rank_on("here", 0, 1)}),
                                    {{"a", 0, ranks({rank_on("a", 1, 1)})}, {"b", 0, ranks({rank_on("b", 2, 1)})}});
  UpdatedRanks second = update_ranks(std::move(first.ranks), ranks({rank_on("here", 0, 1)}),
                                     {{"a", 4.5, std::nullopt}, {"b", 0, ranks({rank_on("b", 2, 2, true)})}});
  ASSERT_EQ(second.ranks.size(), 3u);
  EXPECT_EQ(second.ranks[1].host, "a");
  EXPECT_EQ(second.ranks[1].unheard, 4.5);
  EXPECT_EQ(second.ranks[1].executable, "solver");
  EXPECT_EQ(second.ranks[2].unheard, 0);
  EXPECT_EQ(second.activities, (std::vector<Activity>{Activity::none, Activity::none, Activity::calling}));
}

TEST(RankUpdates, WhatAHostDoesNotNameAnyMoreIsLeftOut) {
  UpdatedRanks first = update_ranks({}, {}, {{"a", 0, ranks({rank_on("a", 0, 1), rank_on("a", 1, 1)})}});
  UpdatedRanks second = update_ranks(std::move(first.ranks), {}, {{"a", 0, ranks({rank_on("a", 1, 1, true)})}});
  ASSERT_EQ(second.ranks.size(), 1u);
  EXPECT_EQ(second.ranks[0].world_rank, 1);
  UpdatedRanks third = update_ranks(std::move(second.ranks), ranks({rank_on("here", 0, 1)}), {});
  EXPECT_EQ(third.ranks.size(), 1u) << "the job has no agents any more";
}

/// A process of this host in another pid namespace: from its record, and from an agent in its namespace.
TEST(RankUpdates, AnAgentKnowsMoreOfAProcessThatIsNotVisibleHere) {
  RankSnapshot record = rank_on("here", 0, 1), sent = record;
  sent.remote = true;
  const auto update = [&](std::vector<RankSnapshot> before, bool answers) {
    return update_ranks(std::move(before), ranks({record}),
                        {{"here", answers ? 0 : 3.0, answers ? std::optional(ranks({sent})) : std::nullopt}});
  };
  UpdatedRanks updated = update_ranks({}, ranks({record}), {});
  ASSERT_EQ(updated.ranks.size(), 1u) << "there is no agent";
  EXPECT_FALSE(updated.ranks[0].remote);
  for (const bool answers : {true, false}) {
    updated = update(std::move(updated.ranks), answers);
    ASSERT_EQ(updated.ranks.size(), 1u) << answers;
    EXPECT_TRUE(updated.ranks[0].remote) << answers;
  }
  record.alive = false;
  for (const bool answers : {true, false}) {
    updated = update(std::move(updated.ranks), answers);
    ASSERT_EQ(updated.ranks.size(), 1u) << answers;
    EXPECT_FALSE(updated.ranks[0].remote || updated.ranks[0].alive) << "the agent may have ended with it";
  }
}

TEST(RankUpdates, ARankThatComputesBetweenPollingCallsDoesNotWait) {
  const auto rank = [](std::uint64_t polls, double cpu_seconds) {
    RankSnapshot polling = rank_on("here", 0, 1);
    polling.visible = true;
    polling.threads[0].polls = polls;
    polling.use.cpu_seconds = cpu_seconds;
    return polling;
  };
  UpdatedRanks updated = update_ranks({}, ranks({rank(0, 1)}), {});
  updated = update_ranks(std::move(updated.ranks), ranks({rank(1000, 1.02)}), {});
  EXPECT_EQ(updated.activities, std::vector<Activity>{Activity::polling});
  updated = update_ranks(std::move(updated.ranks), ranks({rank(2000, 1.06)}), {});
  EXPECT_EQ(updated.activities, std::vector<Activity>{Activity::none});
  updated = update_ranks(std::move(updated.ranks), ranks({rank(2001, 1.06)}), {});
  EXPECT_EQ(updated.activities, std::vector<Activity>{Activity::polling}) << "it sleeps between them";
}

TEST(RankUpdates, ThePartOfAnUnknownProcessStaysPartial) {
  const UpdatedRanks updated = update_ranks({}, {}, {{"a", 0, ranks({rank_on("a", 0, 1, true)})}});
  ASSERT_EQ(updated.ranks.size(), 1u);
  EXPECT_TRUE(updated.ranks[0].partial);
}

}  // namespace
}  // namespace bestride::inline cli
