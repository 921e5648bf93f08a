// SPDX-License-Identifier: Apache-2.0
#include "cli/hosts/messages.hpp"

#include <gtest/gtest.h>

#include <random>

namespace bestride::inline cli {
namespace {

HostRanks sample_ranks() {
  HostRanks ranks{7, 3.5, {}};
  for (int i = 0; i < 3; ++i) {
    RankSnapshot rank;
    rank.host = "node2", rank.pid = 100 + i, rank.process_start = 5;
    rank.world_rank = i, rank.world_size = 8, rank.alive = true;
    rank.sites.resize(2);
    ThreadSnapshot thread;
    thread.current.emplace();
    thread.current->site = 1;
    rank.threads.push_back(thread);
    ranks.ranks.push_back(rank);
  }
  return ranks;
}

HostStacks sample_stacks() {
  HostStacks stacks;
  stacks.stacks.push_back({1, "", false, {{"main", "solver", "solver.c", 12}, {"MPI_Recv", "libmpi.so", "", 0}}});
  stacks.failures.push_back({2, 44, 0, "not permitted"});
  stacks.longest_stop = 1e-4;
  stacks.problems = {"no debug information in 'x'"};
  return stacks;
}

TEST(Messages, HaveTheirKind) {
  EXPECT_EQ(kind_of(message(MessageKind::welcome)), MessageKind::welcome);
  EXPECT_EQ(kind_of(message(Pulse{})), MessageKind::pulse);
  EXPECT_EQ(kind_of(message(sample_stacks())), MessageKind::stacks);
  EXPECT_FALSE(kind_of(""));
  EXPECT_FALSE(kind_of(std::string(1, '\0')));
  EXPECT_FALSE(kind_of("\x7f"));
}

TEST(Messages, ComeBack) {
  const auto hello = read_hello(message(Hello{"1.2", "node1", "slurm-4.0", "slurm-4.0"}));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->version + hello->host + hello->job + hello->launch, "1.2node1slurm-4.0slurm-4.0");
  const auto pulse = read_pulse(message(Pulse{true, false, 64}));
  ASSERT_TRUE(pulse);
  EXPECT_TRUE(pulse->suspects && !pulse->ended && pulse->ranks == 64);
  const auto look = read_look(message(Look{9, true, 1024}));
  ASSERT_TRUE(look);
  EXPECT_TRUE(look->number == 9 && look->full && look->finished_calls == 1024);
  const auto ranks = read_ranks(message(sample_ranks()));
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->look, 7U);
  EXPECT_EQ(ranks->now, 3.5);
  ASSERT_EQ(ranks->ranks.size(), 3U);
  EXPECT_EQ(ranks->ranks[2].pid, 102);
  EXPECT_EQ(ranks->ranks[2].threads[0].current->site, 1U);
  const std::string long_message(1 << 20, 'x');
  const auto bundle = read_bundle(message(std::vector<Bundled>{{1, "a"}, {~std::uint64_t{0}, long_message}}));
  ASSERT_TRUE(bundle && bundle->size() == 2);
  EXPECT_TRUE((*bundle)[0].bytes == "a" && (*bundle)[1].agent == ~std::uint64_t{0} &&
              (*bundle)[1].bytes == long_message);
  const auto address = read_relay_address(message(MessageKind::redirect, {"tcp://10.0.0.1:7", "ab"}));
  ASSERT_TRUE(address);
  EXPECT_EQ(address->addresses + address->key, "tcp://10.0.0.1:7ab");
  const auto stacks = read_stacks(message(sample_stacks()));
  ASSERT_TRUE(stacks);
  ASSERT_EQ(stacks->stacks.size(), 1U);
  EXPECT_EQ(stacks->stacks[0].frames[0].line, 12);
  EXPECT_EQ(stacks->failures[0].problem, "not permitted");
  EXPECT_EQ(stacks->problems, sample_stacks().problems);
}

TEST(Messages, DamagedOnesAreRefusedOrHarmless) {
  std::mt19937 random(3);
  const std::string whole[] = {message(Hello{"1", "a", "b", "c"}), message(Pulse{true, true, 3}),
                               message(Look{1, false, 5}),         message(sample_ranks()),
                               message(sample_stacks()),           message(std::vector<Bundled>{{1, "abc"}, {2, ""}})};
  for (const std::string& bytes : whole)
    for (std::size_t i = 0; i < 2000; ++i) {
      std::string changed = bytes.substr(0, i < bytes.size() ? i : bytes.size());
      if (i >= bytes.size()) changed[random() % changed.size()] = static_cast<char>(random());
      read_hello(changed), read_pulse(changed), read_look(changed), read_ranks(changed), read_stacks(changed),
          read_bundle(changed), read_relay_address(changed);
      if (i < bytes.size()) {
        EXPECT_FALSE(read_hello(changed) && kind_of(changed) == MessageKind::hello);
        EXPECT_FALSE(kind_of(changed) == MessageKind::ranks && read_ranks(changed));
        EXPECT_FALSE(kind_of(changed) == MessageKind::stacks && read_stacks(changed));
        EXPECT_FALSE(kind_of(changed) == MessageKind::bundle && read_bundle(changed));
      }
    }
}

TEST(Messages, AStackWithoutFramesIsRefused) {
  HostStacks stacks = sample_stacks();
  stacks.stacks[0].frames.clear();
  EXPECT_FALSE(read_stacks(message(stacks)));
}

}  // namespace
}  // namespace bestride::inline cli
