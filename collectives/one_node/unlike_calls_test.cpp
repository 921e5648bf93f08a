// SPDX-License-Identifier: Apache-2.0
// Calls in which ranks give other lengths than the others expect, or leave. No rank waits forever, what fits is moved,
// the outcome is as documented, and the next call is in step again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include "collectives/one_node/data_movement.hpp"
#include "collectives/one_node/reductions.hpp"
#include "collectives/one_node/vote.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/simulated_node.hpp"

namespace bestride::inline collectives {
namespace {

constexpr std::byte untouched{0xEE};

/// Contiguous blocks of one rank, one for each rank.
class Blocks final : public Operands {
 public:
  explicit Blocks(const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t size : sizes) data_.emplace_back(static_cast<std::size_t>(size), untouched);
  }
  /// Byte i of the block for rank `to` from rank `from` is value(from, to, i).
  static std::byte value(int from, int to, std::size_t i) {
    return static_cast<std::byte>(1 + (static_cast<std::size_t>(from * 31 + to * 7) + i) % 200);
  }
  void fill(int from) {
    for (int to = 0; to < static_cast<int>(data_.size()); ++to)
      for (std::size_t i = 0; i < at(to).size(); ++i) at(to)[i] = value(from, to, i);
  }
  /// True if the first `moved` bytes of the block came from `from`, and the others are as they were.
  bool holds(int block, int from, int to, std::int64_t moved) const {
    const auto& data = data_[static_cast<std::size_t>(block)];
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != (static_cast<std::int64_t>(i) < moved ? value(from, to, i) : untouched)) return false;
    return true;
  }
  Operand of(int rank) const noexcept override {
    auto& data = const_cast<std::vector<std::byte>&>(data_[static_cast<std::size_t>(rank)]);
    return Operand(data.data(), static_cast<std::int64_t>(data.size()));
  }
  std::int64_t bytes(int rank) const noexcept override {
    return static_cast<std::int64_t>(data_[static_cast<std::size_t>(rank)].size());
  }

 private:
  std::vector<std::byte>& at(int rank) { return data_[static_cast<std::size_t>(rank)]; }
  std::vector<std::vector<std::byte>> data_;
};

struct KeepLarger final : Reduction {
  explicit KeepLarger(int ranks) {
    element_bytes = 1;
    tree = ReductionTree(ReductionTree::Form::any, ranks);
  }
  void combine(const std::byte* from, std::byte* into, std::int64_t bytes) const noexcept override {
    for (std::int64_t i = 0; i < bytes; ++i) into[i] = std::max(into[i], from[i]);
  }
};

enum class Part { bcast, allgather, gather, scatter, alltoall, allreduce, reduce, reduce_scatter, leaves };

struct Member {
  Part part = Part::leaves;
  std::unique_ptr<Blocks> given, taken;
  CallOutcome outcome = CallOutcome::complete;
};

/// One call: who does what, with which lengths.
struct UnlikeCall {
  int ranks, root;
  std::vector<Member> members;
  KeepLarger reduction;

  /// `disturbed`: some members leave, too.
  UnlikeCall(int count, bool disturbed, std::mt19937_64& random)
      : ranks(count), root(static_cast<int>(random() % static_cast<unsigned>(count))), reduction(count) {
    const auto all = static_cast<Part>(random() % static_cast<unsigned>(Part::leaves));
    const std::int64_t usual = length(random);
    for (int rank = 0; rank < ranks; ++rank) {
      Member member;
      member.part = disturbed && random() % 4 == 0 ? Part::leaves : all;
      std::vector<std::int64_t> given, taken;
      for (int other = 0; other < ranks; ++other) {
        given.push_back(random() % 3 ? usual : length(random));
        taken.push_back(random() % 3 ? usual : length(random));
      }
      member.given = std::make_unique<Blocks>(given);
      member.taken = std::make_unique<Blocks>(taken);
      member.given->fill(rank);
      members.push_back(std::move(member));
    }
  }
  static std::int64_t length(std::mt19937_64& random) {
    constexpr std::int64_t most[] = {0, 1, 100, 3000, 20000};
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most[random() % 5] + 1));
  }
  Task task(Rounds& rounds) {
    Member& member = members[static_cast<std::size_t>(rounds.rank())];
    rounds.open();
    co_await part_of_member(rounds, member);
    member.outcome = rounds.outcome();
    if (member.part == Part::leaves || member.outcome == CallOutcome::left)
      rounds.leave();
    else
      rounds.close();
  }
  Task part_of_member(Rounds& rounds, Member& member) {
    const int rank = rounds.rank();
    const Blocks& given = *member.given;
    const Blocks& taken = *member.taken;
    const Blocks* const sent = rank == root ? &given : nullptr;
    const Blocks* const received = rank == root ? &taken : nullptr;
    switch (member.part) {
      case Part::bcast: return bcast(rounds, rank == root ? given.of(0) : taken.of(0), root);
      case Part::allgather: return allgather(rounds, given.of(0), taken);
      case Part::gather: return gather(rounds, given.of(0), received, root);
      case Part::scatter: return scatter(rounds, sent, taken.of(0), root);
      case Part::alltoall: return alltoall(rounds, given, taken);
      case Part::allreduce: return allreduce(rounds, given.of(0), given.of(0), reduction);
      case Part::reduce: return reduce(rounds, given.of(0), given.of(0), root, reduction);
      case Part::reduce_scatter: return reduce_scatter(rounds, given, given.of(rank), reduction);
      case Part::leaves: break;
    }
    return Task();
  }

  /// Whether block `block` of `rank` holds the beginning of a message of `bytes` bytes, as far as there is room.
  bool moved(int rank, int block, int from, int to, std::int64_t bytes, CallOutcome* expected) const {
    const Blocks& taken = *members[static_cast<std::size_t>(rank)].taken;
    if (bytes > taken.bytes(block)) *expected = CallOutcome::truncated;
    return taken.holds(block, from, to, std::min(bytes, taken.bytes(block)));
  }
  std::int64_t sent(int from, int block) const { return members[static_cast<std::size_t>(from)].given->bytes(block); }
  /// Checks a member of a call whose members differ in lengths only.
  bool correct(int rank) const {
    const Member& member = members[static_cast<std::size_t>(rank)];
    CallOutcome expected = CallOutcome::complete;
    bool good = true;
    switch (member.part) {
      case Part::bcast:
        if (rank == root) break;
        good = moved(rank, 0, root, 0, sent(root, 0), &expected);
        if (sent(root, 0) < member.taken->bytes(0)) expected = CallOutcome::differs;
        break;
      case Part::gather:
        if (rank != root) break;
        [[fallthrough]];
      case Part::allgather:
        for (int from = 0; from < ranks; ++from) good &= moved(rank, from, from, 0, sent(from, 0), &expected);
        break;
      case Part::scatter: good = moved(rank, 0, root, rank, sent(root, rank), &expected); break;
      case Part::alltoall:
        for (int from = 0; from < ranks; ++from) good &= moved(rank, from, from, rank, sent(from, rank), &expected);
        break;
      default: return member.outcome != CallOutcome::left;
    }
    return good && member.outcome == expected;
  }
};

Task check_in_step(Rounds& rounds, std::array<std::int64_t, 1>& value) {
  rounds.open();
  Vote vote(rounds, value);
  co_await until([&] { return vote.step(); });
  if (rounds.outcome() != CallOutcome::complete) value[0] = -1;
  rounds.close();
}

void run(bool disturbed, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int job = 0; job < 1500; ++job) {
    const int ranks = static_cast<int>(2 + random() % 5);
    SimulatedNode node(ranks, static_cast<std::int64_t>(1024 + random() % 4096) / 128 * 128, random());
    std::vector<std::unique_ptr<UnlikeCall>> calls;
    for (std::uint64_t count = 1 + random() % 8; count > 0; --count)
      calls.push_back(std::make_unique<UnlikeCall>(ranks, disturbed, random));
    std::vector<std::array<std::int64_t, 1>> values;
    for (int rank = 0; rank < ranks; ++rank) values.push_back({100 + rank});
    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<Task> own;
      for (const auto& call : calls) own.push_back(call->task(node.at(rank)));
      own.push_back(check_in_step(node.at(rank), values[static_cast<std::size_t>(rank)]));
      tasks.push_back(in_turn(std::move(own)));
    }
    ASSERT_TRUE(node.run(std::move(tasks))) << job;
    for (const auto& value : values) ASSERT_EQ(value[0], 100 + ranks - 1) << job;
    if (disturbed) continue;
    for (std::size_t i = 0; i < calls.size(); ++i)
      for (int rank = 0; rank < ranks; ++rank)
        ASSERT_TRUE(calls[i]->correct(rank)) << "job " << job << ", call " << i << ", collective "
                                             << static_cast<int>(calls[i]->members[0].part) << ", rank " << rank;
  }
}

TEST(UnlikeCalls, LengthsDiffer) { run(false, 1); }
TEST(UnlikeCalls, SomeLeave) { run(true, 2); }

/// As far as one of them reads what the other has published.
TEST(UnlikeCalls, AnotherCollectiveIsLeft) {
  SimulatedNode node(2, 4096, 1);
  std::vector<Task> tasks;
  const Blocks given({100, 100});
  const KeepLarger reduction(2);
  for (int rank = 0; rank < 2; ++rank) node.at(rank).open();
  tasks.push_back(allgather(node.at(0), given.of(0), given));
  tasks.push_back(allreduce(node.at(1), given.of(0), given.of(1), reduction));
  ASSERT_TRUE(node.run(std::move(tasks)));
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(node.at(rank).outcome(), CallOutcome::left);
}

}  // namespace
}  // namespace bestride::inline collectives
