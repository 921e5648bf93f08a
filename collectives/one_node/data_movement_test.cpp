// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/data_movement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "collectives/one_node/vote.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/simulated_node.hpp"
#include "collectives/testing/test_blocks.hpp"

namespace bestride::inline collectives {
namespace {

/// One collective of all ranks: its operands, and how its results are checked.
class Call {
 public:
  virtual ~Call() = default;
  virtual Task task(Rounds& rounds) = 0;
  virtual bool correct() const = 0;
};

std::vector<TestBlocks> blocks_of_all(int ranks, const std::vector<std::int64_t>& sizes, std::mt19937_64& random) {
  std::vector<TestBlocks> all;
  for (int rank = 0; rank < ranks; ++rank) all.emplace_back(sizes, random() % 2 != 0);
  return all;
}

class Bcast final : public Call {
 public:
  Bcast(int ranks, std::int64_t bytes, std::mt19937_64& random)
      : root_(static_cast<int>(random() % static_cast<unsigned>(ranks))), data_(blocks_of_all(ranks, {bytes}, random)) {
    at(root_).fill(0, root_);
  }
  Task task(Rounds& rounds) override { return bcast(rounds, at(rounds.rank()).of(0), root_); }
  bool correct() const override {
    return std::all_of(data_.begin(), data_.end(), [&](const TestBlocks& data) { return data.holds(0, root_); });
  }

 private:
  TestBlocks& at(int rank) { return data_[static_cast<std::size_t>(rank)]; }
  int root_;
  std::vector<TestBlocks> data_;
};

/// Allgather, gather and scatter: `rooted` and `scatters` select. Each rank has a block of its own and blocks for all;
/// in place, its own block among those for all is used.
class Blocks final : public Call {
 public:
  enum class Kind { allgather, gather, scatter };
  Blocks(Kind kind, int ranks, const std::vector<std::int64_t>& sizes, std::mt19937_64& random)
      : kind_(kind),
        root_(static_cast<int>(random() % static_cast<unsigned>(ranks))),
        in_place_(random() % 3 == 0),
        own_(blocks_of_all(ranks, sizes, random)),
        all_(blocks_of_all(ranks, sizes, random)) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (kind_ == Kind::scatter) {
        at(all_, root_).fill(rank);
      } else {
        at(own_, rank).fill(rank);
        if (uses_place(rank)) at(all_, rank).fill(rank);
      }
    }
  }
  Task task(Rounds& rounds) override {
    const int rank = rounds.rank();
    const TestBlocks& all = at(all_, rank);
    const Operand own = uses_place(rank) ? all.of(rank) : at(own_, rank).of(rank);
    if (kind_ == Kind::allgather) return allgather(rounds, own, all);
    const TestBlocks* const at_root = rank == root_ ? &all : nullptr;
    return kind_ == Kind::gather ? gather(rounds, own, at_root, root_) : scatter(rounds, at_root, own, root_);
  }
  bool correct() const override {
    const int ranks = static_cast<int>(all_.size());
    for (int rank = 0; rank < ranks; ++rank) {
      if (kind_ == Kind::scatter) {
        if (!uses_place(rank) && !own_[static_cast<std::size_t>(rank)].holds(rank)) return false;
        if (!all_[static_cast<std::size_t>(root_)].holds(rank)) return false;
        continue;
      }
      if (kind_ == Kind::gather && rank != root_) continue;
      for (int from = 0; from < ranks; ++from)
        if (!all_[static_cast<std::size_t>(rank)].holds(from)) return false;
    }
    return true;
  }

 private:
  static TestBlocks& at(std::vector<TestBlocks>& blocks, int rank) { return blocks[static_cast<std::size_t>(rank)]; }
  bool uses_place(int rank) const { return in_place_ && (kind_ == Kind::allgather || rank == root_); }
  Kind kind_;
  int root_;
  bool in_place_;
  std::vector<TestBlocks> own_, all_;
};

class Alltoall final : public Call {
 public:
  Alltoall(int ranks, std::int64_t most, std::mt19937_64& random) {
    std::vector<std::vector<std::int64_t>> sizes;  // by sender, by receiver
    for (int rank = 0; rank < ranks; ++rank)
      sizes.push_back(random_sizes(random, static_cast<std::size_t>(ranks), {most}));
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> received;
      for (const auto& sent : sizes) received.push_back(sent[static_cast<std::size_t>(rank)]);
      input_.emplace_back(sizes[static_cast<std::size_t>(rank)], random() % 2 != 0);
      output_.emplace_back(received, random() % 2 != 0);
      for (int to = 0; to < ranks; ++to) input_.back().fill(to, rank * ranks + to);
    }
  }
  Task task(Rounds& rounds) override {
    const auto rank = static_cast<std::size_t>(rounds.rank());
    return alltoall(rounds, input_[rank], output_[rank]);
  }
  bool correct() const override {
    const int ranks = static_cast<int>(input_.size());
    for (int rank = 0; rank < ranks; ++rank)
      for (int from = 0; from < ranks; ++from)
        if (!output_[static_cast<std::size_t>(rank)].holds(from, from * ranks + rank)) return false;
    return true;
  }

 private:
  std::vector<TestBlocks> input_, output_;
};

class AgreedMaximum final : public Call {
 public:
  AgreedMaximum(int ranks, std::mt19937_64& random) : values_(static_cast<std::size_t>(ranks), {0, 0, 0}) {
    for (auto& values : values_)
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<std::int64_t>(random() % 1000) - 500;
        expected_[i] = std::max(expected_[i], values[i]);
      }
  }
  Task task(Rounds& rounds) override { return vote(rounds, values_[static_cast<std::size_t>(rounds.rank())]); }
  bool correct() const override {
    return std::all_of(values_.begin(), values_.end(), [&](const auto& values) { return values == expected_; });
  }

 private:
  static Task vote(Rounds& rounds, std::span<std::int64_t> values) {
    Vote vote(rounds, values);
    co_await until([&] { return vote.step(); });
  }
  std::vector<std::array<std::int64_t, 3>> values_;
  std::array<std::int64_t, 3> expected_{-1000, -1000, -1000};
};

std::unique_ptr<Call> random_call(int ranks, std::mt19937_64& random) {
  const std::int64_t most = std::vector<std::int64_t>{0, 1, 60, 1000, 20000}[random() % 5];
  const auto sizes = random_sizes(random, static_cast<std::size_t>(ranks), {most});
  switch (random() % 6) {
    case 0: return std::make_unique<Bcast>(ranks, most, random);
    case 1: return std::make_unique<Blocks>(Blocks::Kind::allgather, ranks, sizes, random);
    case 2: return std::make_unique<Blocks>(Blocks::Kind::gather, ranks, sizes, random);
    case 3: return std::make_unique<Blocks>(Blocks::Kind::scatter, ranks, sizes, random);
    case 4: return std::make_unique<Alltoall>(ranks, most, random);
    default: return std::make_unique<AgreedMaximum>(ranks, random);
  }
}

/// Several collectives one after the other: a rank begins the next one as soon as it has completed one. Every byte
/// arrives and nothing else is written.
TEST(OneNode, SequencesOfCollectivesMoveEveryByte) {
  std::mt19937_64 random(1);
  for (int job = 0; job < 600; ++job) {
    const int ranks = static_cast<int>(1 + random() % 9);
    SimulatedNode node(ranks, static_cast<std::int64_t>(512 + random() % 4096) / 128 * 128, random());
    std::vector<std::unique_ptr<Call>> calls;
    for (std::uint64_t count = 1 + random() % 12; count > 0; --count) calls.push_back(random_call(ranks, random));
    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<Task> own;
      for (const auto& call : calls) own.push_back(as_call(node.at(rank), call->task(node.at(rank))));
      tasks.push_back(in_turn(std::move(own)));
    }
    ASSERT_TRUE(node.run(std::move(tasks))) << job;
    for (const auto& call : calls) ASSERT_TRUE(call->correct()) << job;
  }
}

/// Without values it is a barrier: no rank completes before all have entered.
TEST(OneNode, VoteWaitsForAll) {
  SimulatedNode node(3, 4096, 1);
  for (int rank = 0; rank < 3; ++rank) node.at(rank).open();
  Vote first(node.at(0), {}), second(node.at(1), {}), third(node.at(2), {});
  EXPECT_FALSE(first.step());
  EXPECT_FALSE(second.step());
  EXPECT_FALSE(first.step());
  EXPECT_TRUE(third.step());
  EXPECT_TRUE(first.step());
  EXPECT_TRUE(second.step());
}

}  // namespace
}  // namespace bestride::inline collectives
