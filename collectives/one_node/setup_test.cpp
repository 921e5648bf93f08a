// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/setup.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {
namespace {

/// What rank 0 gives.
enum class Answer { nothing, small, full };

/// Ranks that share a pool of rank 0, in one process.
struct Node {
  PartPool pool;
  SegmentMap others;
};

/// One rank's side of one communicator.
struct Member {
  Member(Node& of, PartOffer& offer, int ranks, int which)
      : node(of), rank(which), shape{ranks, 0}, set_up(std::in_place, offer, WindowMember{ranks, which}) {}

  bool step(Answer answer, bool can_see = true) {
    return set_up->step(
        [&](std::int64_t* slot_bytes) {
          if (answer == Answer::nothing) return Part();
          *slot_bytes = answer == Answer::small ? 4096 : 16384;
          shape.slot_bytes = *slot_bytes;
          const Part part = node.pool.take(static_cast<std::int64_t>(shape.bytes()), PartPool::From::any,
                                           std::numeric_limits<std::int64_t>::max());
          if (part.written > 0) shape.clear(part.data);
          parts.push_back(part);
          return part;
        },
        [&](const WindowKey& key) { return node.others.find(key); },
        [&](std::byte* memory, std::int64_t slot_bytes) {
          shape.slot_bytes = slot_bytes;
          if (can_see) next = view_of<Rounds>(memory, shape, rank);
          return next != nullptr;
        },
        [&] { next.reset(); });
  }
  void take_over() {
    if (set_up->given()) rounds = std::move(next);
  }

  Node& node;
  int rank;
  RoundsShape shape;
  std::vector<Part> parts;  ///< on rank 0
  std::unique_ptr<Rounds> rounds, next;
  std::optional<PartSetUp> set_up;
};

using Members = std::vector<std::unique_ptr<Member>>;

Members members_of(Node& node, PartOffer& offer, int ranks) {
  Members members;
  for (int rank = 0; rank < ranks; ++rank) members.push_back(std::make_unique<Member>(node, offer, ranks, rank));
  return members;
}

/// Asks a sequence of questions. Ranks take turns in random order, and one may be questions ahead of another. `blind`:
/// the rank that can't use a part.
void ask(Members& members, const std::vector<Answer>& answers, std::mt19937_64& random, int blind = -1) {
  std::vector<std::size_t> at(members.size());
  for (std::unique_ptr<Member>& member : members) member->set_up->ask();
  std::size_t ended = 0;
  for (int turn = 0; ended < members.size() && turn < 100'000; ++turn) {
    const std::size_t pick = random() % members.size();
    Member& member = *members[pick];
    if (at[pick] == answers.size() || !member.step(answers[at[pick]], member.rank != blind)) continue;
    member.take_over();
    if (++at[pick] == answers.size() || member.set_up->closed()) {
      at[pick] = answers.size();
      ++ended;
    } else {
      member.set_up->ask();
    }
  }
  EXPECT_EQ(ended, members.size());
}

void expect_shared(Members& members, std::int64_t slot_bytes) {
  for (const auto& member : members) {
    ASSERT_TRUE(member->rounds);
    EXPECT_EQ(member->rounds->slot_bytes(), slot_bytes);
  }
  members[0]->rounds->open();
  const Rounds::Number round = members[0]->rounds->begin(RoundKind::bcast);
  EXPECT_FALSE(members.back()->rounds->is_published(round, 0) && members.size() > 1);
  EXPECT_TRUE(members[0]->rounds->take(round, 1));
  *members[0]->rounds->own(round) = std::byte{7};
  members[0]->rounds->publish(round, 1);
  for (const auto& member : members) {
    EXPECT_TRUE(member->rounds->is_published(round, 0));
    EXPECT_EQ(*member->rounds->of(round, 0), std::byte{7});
  }
}

TEST(Setup, RanksThatArriveInAnyOrderShareTheMemory) {
  std::mt19937_64 random(1);
  Node node;
  for (int job = 0; job < 50; ++job) {
    PartOffer offer{};
    Members members = members_of(node, offer, static_cast<int>(1 + random() % 9));
    ask(members, {Answer::full}, random);
    expect_shared(members, 16384);
    const Part part = members[0]->parts[0];
    members.clear();
    node.pool.put_back(part);
  }
  EXPECT_LT(node.pool.bytes(), 4 << 20);
}

/// A rank may be questions ahead of another one, which must not take a later answer for an earlier one.
TEST(Setup, QuestionsAreAnsweredInOrder) {
  std::mt19937_64 random(2);
  Node node;
  for (int job = 0; job < 200; ++job) {
    PartOffer offer{};
    Members members = members_of(node, offer, static_cast<int>(1 + random() % 5));
    ask(members, {Answer::nothing, Answer::nothing, Answer::small, Answer::nothing, Answer::full}, random);
    expect_shared(members, 16384);
    for (const auto& member : members) EXPECT_TRUE(member->set_up->closed());
    EXPECT_EQ(members[0]->parts.size(), 2u);
    for (const Part& part : members[0]->parts) node.pool.put_back(part);
  }
}

TEST(Setup, WithoutMemoryAllRanksHaveNone) {
  std::mt19937_64 random(3);
  Node node;
  for (int ranks = 1; ranks < 6; ++ranks) {
    PartOffer offer{};
    Members members = members_of(node, offer, ranks);
    ask(members, {Answer::nothing}, random);
    for (const auto& member : members) {
      EXPECT_FALSE(member->rounds);
      EXPECT_FALSE(member->set_up->closed());
    }
  }
}

/// One rank can't open the window, or has no memory for its view. The smaller part from before stays.
TEST(Setup, OneRankWithoutMemoryIsEnough) {
  std::mt19937_64 random(4);
  Node node;
  for (int ranks = 2; ranks < 6; ++ranks)
    for (int blind = 0; blind < ranks; ++blind) {
      PartOffer offer{};
      Members members = members_of(node, offer, ranks);
      ask(members, {Answer::full}, random, blind);
      for (const auto& member : members) {
        EXPECT_FALSE(member->rounds);
        EXPECT_TRUE(member->set_up->closed());
      }
      PartOffer second{};
      Members others = members_of(node, second, ranks);
      ask(others, {Answer::small}, random);
      ask(others, {Answer::full}, random, blind);
      expect_shared(others, 4096);
    }
}

}  // namespace
}  // namespace bestride::inline collectives
