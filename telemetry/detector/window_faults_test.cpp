// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/detection_fixture.hpp"
#include "telemetry/waits/sample_window.hpp"

namespace bestride::inline telemetry {
namespace {

class WindowFaults : public Detection {
 protected:
  WindowFaults() {
    add_window(job);
    observe(1);
  }
  void all_in_barrier_but(int rank) {
    for (int other = 0; other < 4; ++other)
      if (other != rank) job.collective(other, "MPI_Barrier");
  }
};

TEST_F(WindowFaults, APostThatIsLeftOut) {
  epoch(job, 0, 1).starts = 1;
  job.call(0, "MPI_Win_start", no_rank, sample_window);
  all_in_barrier_but(0);
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{1});
  ASSERT_TRUE(found.epoch);
  EXPECT_EQ(found.epoch->waiter, 0);
  EXPECT_STREQ(found.epoch->missing, "MPI_Win_post");
}

TEST_F(WindowFaults, ACompleteOrAStartThatIsLeftOut) {
  epoch(job, 0, 3).posts = 1;
  epoch(job, 3, 0).starts = 1;
  job.call(0, "MPI_Win_wait", no_rank, sample_window);
  all_in_barrier_but(0);
  EXPECT_STREQ(expect_one(observe(2), Fault::mismatch, Ranks{3}).epoch->missing, "MPI_Win_complete");
  epoch(job, 3, 0).starts = 0;
  EXPECT_STREQ(expect_one(observe(2), Fault::mismatch, Ranks{3}).epoch->missing, "MPI_Win_start");
}

/// Rank 1 has started for rank 2 instead of rank 0.
TEST_F(WindowFaults, AWrongGroupIsThatOfTheRankInBetween) {
  epoch(job, 0, 1).posts = 1;
  epoch(job, 1, 2).starts = 1;
  job.call(0, "MPI_Win_wait", no_rank, sample_window);
  job.call(1, "MPI_Win_start", no_rank, sample_window);
  for (const int rank : {2, 3}) job.collective(rank, "MPI_Barrier");
  EXPECT_EQ(expect_one(observe(2), Fault::mismatch, Ranks{1}).epoch->waiter, 0);
}

TEST_F(WindowFaults, AllStartBeforeTheyPost) {
  for (int rank = 0; rank < 4; ++rank) {
    epoch(job, rank, (rank + 1) % 4).starts = 1;
    job.call(rank, "MPI_Win_start", no_rank, sample_window);
  }
  expect_one(observe(2), Fault::deadlock, Ranks{0, 1, 2, 3});
}

TEST_F(WindowFaults, ARankThatHasNotPostedMayWork) {
  epoch(job, 0, 1).starts = 1;
  job.call(0, "MPI_Win_start", no_rank, sample_window);
  for (const int rank : {2, 3}) job.collective(rank, "MPI_Barrier");
  EXPECT_TRUE(observe(3).empty());
  expect_one(observe(8), Fault::computation_hang, Ranks{1});
}

TEST_F(WindowFaults, ACompleteThatTransfersIsNoHang) {
  epoch(job, 0, 1).starts = 1;
  epoch(job, 1, 0).posts = 1;
  job.call(0, "MPI_Win_complete", no_rank, sample_window);
  all_in_barrier_but(0);
  EXPECT_TRUE(observe(9).empty());
}

TEST_F(WindowFaults, AmountsThatDifferInACallThatHangs) {
  for (int rank = 0; rank < 4; ++rank) {
    job.collective(rank, "MPI_Alltoallv");
    ++thread(rank).calls;
  }
  amounts(job, 0, {0, 0, 0, 0}, {0, 8, 0, 0});
  amounts(job, 1, {0, 0, 0, 0}, {0, 0, 0, 0});
  EXPECT_TRUE(observe(0.5).empty());
  expect_one(observe(2), Fault::mismatch, Ranks{0, 1});
}

}  // namespace
}  // namespace bestride::inline telemetry
