// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {
namespace {

struct Member {
  Window window;
  std::unique_ptr<Rounds> rounds;
  Task task;
};

Task set_up_rounds(WindowOffer& offer, RoundsShape shape, int rank, bool can_create, Member& member) {
  return set_up_window(offer, {shape.ranks, rank}, shape.bytes(), can_create, member.window, member.rounds,
                       [shape, rank](std::byte* memory) { return view_of<Rounds>(memory, shape, rank); });
}

/// Sets up rounds of `ranks` ranks, which take turns in random order and begin at random times.
std::vector<Member> set_up(WindowOffer& offer, int ranks, bool can_create, std::mt19937_64& random) {
  const RoundsShape shape{ranks, 4096};
  std::vector<Member> members(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    Member& member = members[rank];
    member.task = set_up_rounds(offer, shape, static_cast<int>(rank), can_create, member);
  }
  std::vector<Member*> running;
  for (Member& member : members) running.push_back(&member);
  for (int turn = 0; !running.empty() && turn < 100'000; ++turn) {
    const std::size_t pick = random() % running.size();
    if (!running[pick]->task.step()) continue;
    EXPECT_FALSE(running[pick]->task.failed());
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  EXPECT_TRUE(running.empty());
  return members;
}

TEST(Setup, RanksThatArriveInAnyOrderShareTheMemory) {
  std::mt19937_64 random(1);
  for (int job = 0; job < 50; ++job) {
    const int ranks = static_cast<int>(1 + random() % 9);
    WindowOffer offer{};
    std::vector<Member> members = set_up(offer, ranks, true, random);
    EXPECT_EQ(offer.left, ranks);
    for (const Member& member : members) ASSERT_TRUE(member.rounds);
    members[0].rounds->open();
    const Rounds::Number round = members[0].rounds->begin(RoundKind::bcast);
    *members[0].rounds->own(round) = std::byte{7};
    members[0].rounds->publish(round, 1);
    for (const Member& member : members) {
      EXPECT_TRUE(member.rounds->is_published(round, 0));
      EXPECT_EQ(*member.rounds->of(round, 0), std::byte{7});
      EXPECT_EQ(member.window.descriptor(), -1);
    }
  }
}

TEST(Setup, WithoutMemoryAllRanksHaveNone) {
  std::mt19937_64 random(2);
  for (int ranks = 1; ranks < 6; ++ranks) {
    WindowOffer offer{};
    for (const Member& member : set_up(offer, ranks, false, random)) {
      EXPECT_FALSE(member.rounds);
      EXPECT_FALSE(member.window.data());
    }
    EXPECT_EQ(offer.left, ranks);
  }
}

/// One rank can't open the window: its descriptor is closed when that rank comes.
TEST(Setup, OneRankWithoutMemoryIsEnough) {
  WindowOffer offer{};
  const RoundsShape shape{3, 4096};
  Member members[3];
  for (int rank = 0; rank < 3; ++rank) members[rank].task = set_up_rounds(offer, shape, rank, true, members[rank]);
  EXPECT_FALSE(members[0].task.step());
  EXPECT_FALSE(members[1].task.step());
  const std::int64_t descriptor = std::exchange(offer.key.descriptor, -1);
  EXPECT_FALSE(members[2].task.step());
  offer.key.descriptor = descriptor;
  for (Member& member : members) EXPECT_TRUE(member.task.step());
  for (const Member& member : members) EXPECT_FALSE(member.rounds);
}

}  // namespace
}  // namespace bestride::inline collectives
