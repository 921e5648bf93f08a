// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/agree.hpp"

#include <gtest/gtest.h>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

TEST(Agreement, IsTheConjunctionOfAllVotesAndTakesFewBytes) {
  std::mt19937_64 random(11);
  for (int round = 0; round < test::repetitions(300); ++round) {
    SimulatedJob job(random_placement(random), random());
    for (int again = 0; again < 4; ++again) {
      const AgreementScope reach = random() % 3 ? AgreementScope::all : AgreementScope::node;
      std::vector<AgreedWords> words(static_cast<std::size_t>(job.ranks()));
      std::vector<AgreedWords> expected(static_cast<std::size_t>(job.topology().nodes()));
      for (AgreedWords& all : expected)
        for (std::uint64_t& word : all.word) word = ~std::uint64_t{0};
      std::vector<std::int64_t> before;
      for (int node = 0; node < job.topology().nodes(); ++node) before.push_back(job.bytes_out(node));
      std::vector<Task> tasks;
      for (int rank = 0; rank < job.ranks(); ++rank) {
        AgreedWords& mine = words[static_cast<std::size_t>(rank)];
        for (std::uint64_t& word : mine.word) word = random() | random() | random();
        for (int node = 0; node < job.topology().nodes(); ++node)
          if (reach == AgreementScope::all || node == job.topology().node_of(rank))
            expected[static_cast<std::size_t>(node)] &= mine;
        tasks.push_back(agree(job.at(rank), mine, reach));
      }
      ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
      for (int rank = 0; rank < job.ranks(); ++rank)
        for (int i = 0; i < 4; ++i)
          ASSERT_EQ(words[static_cast<std::size_t>(rank)].word[i],
                    expected[static_cast<std::size_t>(job.topology().node_of(rank))].word[i])
              << "round " << round;
      for (int node = 0; node < job.topology().nodes(); ++node) {
        int rounds = 0;
        while ((1 << rounds) < job.topology().nodes()) ++rounds;
        EXPECT_EQ(job.bytes_out(node) - before[static_cast<std::size_t>(node)],
                  reach == AgreementScope::all ? 32 * rounds : 0);
      }
    }
  }
}

}  // namespace
}  // namespace bestride::inline collectives
