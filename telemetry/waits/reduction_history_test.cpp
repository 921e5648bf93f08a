// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/reduction_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "telemetry/record/reduction.hpp"
#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::IsEmpty;
using Ranks = std::vector<std::int32_t>;

constexpr std::uint16_t sum = reduction_code(ReductionOp::sum, BasicType::integer);
constexpr std::uint16_t maximum = reduction_code(ReductionOp::max, BasicType::integer);

class ReductionHistories : public testing::Test {
 protected:
  void reduce(int rank, std::uint16_t code, std::uint64_t bytes = 8, std::int32_t root = no_rank) {
    CommunicatorSnapshot& world = job.ranks[static_cast<std::size_t>(rank)].communicators[0];
    ++world.collectives;
    world.reductions = add_to_hash(world.reductions, code, root, bytes);
  }
  /// All ranks but `other` make the usual call.
  void reduce_all(int other = -1, std::uint16_t code = sum, std::uint64_t bytes = 8, std::int32_t root = no_rank) {
    for (int rank = 0; rank < 5; ++rank) rank == other ? reduce(rank, code, bytes, root) : reduce(rank, sum);
  }
  std::vector<CollectiveMismatch> observe() { return history.observe(Members(job.ranks)); }
  void expect(const Ranks& most, const Ranks& others, std::uint32_t first, std::uint32_t last) {
    EXPECT_THAT(observe(), IsEmpty()) << "the call may yet be found itself";
    const std::vector<CollectiveMismatch> found = observe();
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].variants.size(), 2u);
    EXPECT_EQ(found[0].variants[0].ranks, most);
    EXPECT_EQ(found[0].variants[1].ranks, others);
    EXPECT_EQ(found[0].first, first);
    EXPECT_EQ(found[0].ordinal, last);
    EXPECT_EQ(found[0].name, "MPI_COMM_WORLD");
    EXPECT_THAT(observe(), IsEmpty()) << "once";
  }

  SampleJob job{5};
  ReductionHistory history;
};

TEST_F(ReductionHistories, EqualReductionsAreNoMismatch) {
  for (int i = 0; i < 1000; ++i) {
    reduce_all();
    if (i % 7 == 0) {
      EXPECT_THAT(observe(), IsEmpty());
    }
  }
}

TEST_F(ReductionHistories, OneOfManyCallsBetweenTwoObservations) {
  for (int i = 0; i < 10; ++i) reduce_all();
  observe();
  for (int i = 0; i < 5000; ++i) reduce_all(i == 3000 ? 2 : -1, maximum);
  expect({0, 1, 3, 4}, {2}, 11, 5010);
}

TEST_F(ReductionHistories, AnotherCountTypeOrRoot) {
  reduce_all(1, sum, 16);
  expect({0, 2, 3, 4}, {1}, 1, 1);
  for (const auto& [code, bytes, root] :
       {std::tuple(reduction_code(ReductionOp::sum, BasicType::floating), 8, no_rank), std::tuple(sum, 8, no_rank),
        std::tuple(sum, 8, static_cast<SpecialRank>(3))}) {
    job = SampleJob(5);
    history = {};
    reduce_all(4, code, static_cast<std::uint64_t>(bytes), root);
    observe();
    EXPECT_EQ(observe().size(), code == sum && root == no_rank ? 0u : 1u);
  }
}

TEST_F(ReductionHistories, SizesAndTypesOfAUsersOperationMayBeSpelledDifferently) {
  for (int rank = 0; rank < 5; ++rank)
    reduce(rank, reduction_code(ReductionOp::user, rank == 1 ? BasicType::unknown : BasicType::integer),
           static_cast<std::uint64_t>(rank));
  observe();
  EXPECT_THAT(observe(), IsEmpty());
}

TEST_F(ReductionHistories, RanksAfterDifferentNumbersOfCallsAreNotCompared) {
  reduce_all(2, maximum);
  for (const int rank : {0, 1, 2, 3}) reduce(rank, sum);
  for (const int rank : {0, 1, 3}) reduce(rank, sum);
  observe();
  EXPECT_THAT(observe(), IsEmpty());
  reduce(2, sum);
  expect({0, 1, 3}, {2}, 1, 3);
}

TEST_F(ReductionHistories, TooFewRanksTellNotWhoIsTheMinority) {
  reduce_all(2, maximum);
  reduce(0, sum);
  reduce(2, sum);
  observe();
  EXPECT_THAT(observe(), IsEmpty());
}

TEST_F(ReductionHistories, RandomJobs) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    job = SampleJob(5);
    history = {};
    const int wrong = static_cast<int>(random() % 6) - 1, at = static_cast<int>(random() % 300);
    std::vector<Ranks> minorities;
    for (int i = 0; i < 300; ++i) {
      reduce_all(i == at ? wrong : -1, maximum);
      if (random() % 20 == 0 || i >= 298)
        for (const CollectiveMismatch& found : observe()) {
          EXPECT_LE(found.first, static_cast<std::uint32_t>(at) + 1);
          EXPECT_GE(found.ordinal, static_cast<std::uint32_t>(at) + 1);
          minorities.push_back(found.variants[1].ranks);
        }
    }
    observe();
    if (at < 298 || wrong < 0) {
      EXPECT_EQ(minorities, wrong < 0 ? std::vector<Ranks>{} : std::vector<Ranks>{{wrong}});
    }
  }
}

}  // namespace
}  // namespace bestride::inline telemetry
