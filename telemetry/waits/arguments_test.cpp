// SPDX-License-Identifier: Apache-2.0
// Arguments of collective calls that do not fit each other: roots of intercommunicators, amounts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "telemetry/waits/collective_call.hpp"
#include "telemetry/waits/sample_job.hpp"
#include "telemetry/waits/sample_window.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {
namespace {

using Ranks = std::vector<std::int32_t>;
constexpr std::uint32_t x = unknown_amount;

/// Ranks 0 and 1 are one group, 2 to 4 the other. Each rank is in a broadcast with its root; no_rank: in none.
class InterRoots : public testing::Test {
 protected:
  std::vector<CollectiveMismatch> with(const std::vector<std::int32_t>& roots) {
    job = SampleJob(5);
    add_inter(job, 2);
    for (std::size_t rank = 0; rank < roots.size(); ++rank)
      if (roots[rank] != no_rank) job.collective(static_cast<int>(rank), "MPI_Bcast", roots[rank], sample_inter);
    return find_waits(job.ranks).mismatches;
  }
  Ranks culprits_with(const std::vector<std::int32_t>& roots) {
    const auto found = with(roots);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Ranks{} : found[0].culprits;
  }
  SampleJob job{1};
};

TEST_F(InterRoots, AgreeInARightCall) {
  EXPECT_TRUE(with({root_rank, null_rank, 0, 0, 0}).empty());
  EXPECT_TRUE(with({1, 1, null_rank, root_rank, null_rank}).empty());
}

TEST_F(InterRoots, OfAnUnfinishedCallMayYetAgree) {
  EXPECT_TRUE(with({null_rank, no_rank, 1, 1, no_rank}).empty());
  EXPECT_TRUE(with({null_rank, no_rank, no_rank, no_rank, no_rank}).empty());
  EXPECT_TRUE(with({0, no_rank, no_rank, null_rank, null_rank}).empty());
}

TEST_F(InterRoots, NobodyIsTheRoot) { EXPECT_EQ(culprits_with({null_rank, null_rank, 0, 0, 0}), Ranks{0}); }
TEST_F(InterRoots, TwoAreTheRoot) { EXPECT_EQ(culprits_with({root_rank, root_rank, 0, 0, 0}), Ranks{1}); }
TEST_F(InterRoots, OneNamesAnotherRoot) { EXPECT_EQ(culprits_with({root_rank, null_rank, 0, 1, 0}), Ranks{3}); }
TEST_F(InterRoots, BothGroupsOnlyReceive) { EXPECT_EQ(culprits_with({0, 0, 0, 0, 0}), (Ranks{0, 1})); }
TEST_F(InterRoots, AllAreNull) {
  EXPECT_EQ(culprits_with({null_rank, null_rank, null_rank, null_rank, null_rank}), (Ranks{0, 1, 2, 3, 4}));
}
TEST_F(InterRoots, TheTextNamesTheSpecialRanks) {
  const auto found = with({null_rank, null_rank, 0, 0, 0});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].variants.size(), 2u);
  EXPECT_EQ(variant_text(found[0].variants[1]), "MPI_Bcast root MPI_PROC_NULL");
}
TEST_F(InterRoots, AmountsOfBothGroups) {
  const auto found = [this](const char* function, const std::vector<std::uint64_t>& bytes) {
    const bool rooted = std::string_view(function) == "MPI_Bcast";
    const std::int32_t roots[] = {root_rank, null_rank, 0, 0, 0};
    with({});
    for (int rank = 0; rank < 5; ++rank)
      job.collective(rank, function, rooted ? roots[rank] : no_rank, sample_inter).bytes =
          bytes[static_cast<std::size_t>(rank)];
    return find_waits(job.ranks).mismatches;
  };
  const auto wrong = found("MPI_Allreduce", {8, 8, 8, 24, 8});
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].variants.at(1).ranks, Ranks{3});
  EXPECT_EQ(wrong[0].variants.at(1).bytes, 24u);
  EXPECT_TRUE(found("MPI_Allgather", {8, 8, 24, 24, 24}).empty());
  EXPECT_TRUE(found("MPI_Bcast", {8, 400, 8, 8, 8}).empty()) << "rank 1 takes no part";
  EXPECT_EQ(found("MPI_Bcast", {8, 400, 8, 8, 16}).size(), 1u);
}
TEST_F(InterRoots, TheRootOfTheOtherGroupIsWaitedFor) {
  with({no_rank, no_rank, 1, no_rank, no_rank});
  const WaitGraph graph = find_waits(job.ranks);
  EXPECT_TRUE(graph.needs(2, 1));
  EXPECT_FALSE(graph.needs(2, 0));
  EXPECT_FALSE(graph.needs(2, 3));
}
TEST_F(InterRoots, AMessageGoesToTheOtherGroup) {
  with({});
  job.call(3, "MPI_Recv", 0, sample_inter).tag = 4;
  job.call(1, "MPI_Ssend", 2, sample_inter).tag = 4;
  const WaitGraph graph = find_waits(job.ranks);
  EXPECT_NE(graph.edge(3, 0), nullptr);
  EXPECT_NE(graph.edge(1, 4), nullptr);
}

class Amounts : public testing::Test {
 protected:
  void all_in(const char* function, std::int32_t root = no_rank) {
    for (int rank = 0; rank < 3; ++rank) job.collective(rank, function, root);
  }
  std::vector<CollectiveMismatch> found() const { return find_waits(job.ranks).mismatches; }
  void bytes(int rank, std::uint64_t bytes) {
    job.ranks[static_cast<std::size_t>(rank)].threads[0].current->bytes = bytes;
  }
  SampleJob job{3};
};

TEST_F(Amounts, OfAPair) {
  all_in("MPI_Alltoallv");
  amounts(job, 0, {0, 8, 16}, {0, 1, 2});
  amounts(job, 1, {1, 0, 4}, {8, 0, 5});
  amounts(job, 2, {2, 5, 0}, {16, 0, 0});
  const auto differing = found();
  ASSERT_EQ(differing.size(), 1u);
  ASSERT_EQ(differing[0].pairs.size(), 1u);
  EXPECT_EQ(pair_text(differing[0].pairs[0]), "rank 1 sends 4 B to rank 2, which expects 0 B");
  EXPECT_EQ(differing[0].culprits, (Ranks{1, 2}));
}

TEST_F(Amounts, OfOneRankWithAllOthers) {
  all_in("MPI_Alltoallv");
  amounts(job, 0, {0, 8, 16}, {0, 1, 2});
  amounts(job, 1, {3, 0, 4}, {8, 0, 5});
  amounts(job, 2, {2, 5, 0}, {16, 4, 0});
  job.ranks[1].amounts[0].sent = {3, 0, 5};
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].culprits, Ranks{1});
}

TEST_F(Amounts, ThatAreEqualOrNotKnown) {
  all_in("MPI_Alltoallv");
  amounts(job, 0, {0, 8, 16}, {0, 1, 2});
  amounts(job, 1, {1, 0, x}, {8, 0, 5});
  amounts(job, 2, {2, 5, 0}, {16, 7, 0});
  EXPECT_TRUE(found().empty());
}

/// A rank that has not come yet may have passed other arguments before.
TEST_F(Amounts, OfACallThatARankHasNotBegun) {
  all_in("MPI_Alltoallv");
  amounts(job, 0, {0, 8, 16}, {0, 1, 2});
  amounts(job, 1, {7, 0, 4}, {8, 0, 5});
  EXPECT_EQ(found().size(), 1u);
  job.leave(2);
  job.ranks[2].communicators[0].collectives = 0;
  EXPECT_TRUE(found().empty());
}

TEST_F(Amounts, OfARankThatHasLeftTheCall) {
  all_in("MPI_Alltoallv");
  amounts(job, 0, {0, 8, 16}, {0, 1, 2});
  amounts(job, 1, {1, 0, 4}, {8, 0, 5});
  amounts(job, 2, {2, 0, 0}, {16, 4, 0});
  job.ranks[2].threads[0].finished.push_back(*job.ranks[2].threads[0].current);
  job.collective(2, "MPI_Barrier");
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].culprits, (Ranks{1, 2}));
}

TEST_F(Amounts, OfGathervAndScatterv) {
  all_in("MPI_Gatherv", 0);
  amounts(job, 0, {}, {8, 16, 24});
  bytes(1, 16);
  bytes(2, 0);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].culprits, (Ranks{0, 2}));
  bytes(2, 24);
  EXPECT_TRUE(found().empty());
  all_in("MPI_Scatterv", 1);
  amounts(job, 1, {4, 8, 8}, {});
  bytes(0, 8);
  bytes(2, 8);
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(pair_text(found()[0].pairs[0]), "rank 1 sends 4 B to rank 0, which expects 8 B");
}

TEST_F(Amounts, ThatAllRanksShare) {
  all_in("MPI_Allgatherv");
  for (int rank = 0; rank < 3; ++rank) amounts(job, rank, {}, {8, 16, 24});
  EXPECT_TRUE(found().empty());
  job.ranks[2].amounts[0].received[0] = 0;
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].culprits, Ranks{2});
  all_in("MPI_Reduce_scatter");
  for (int rank = 0; rank < 3; ++rank) amounts(job, rank, {}, {8, 16, rank == 1 ? 32u : 24u});
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].culprits, Ranks{1});
}

/// What is equal on all ranks by MPI is compared as that of a broadcast.
TEST_F(Amounts, OfOneSizeForAll) {
  for (int rank = 0; rank < 3; ++rank) job.collective(rank, "MPI_Allgather").bytes = rank == 1 ? 8 : 16;
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].variants.at(1).ranks, Ranks{1});
}

}  // namespace
}  // namespace bestride::inline telemetry
