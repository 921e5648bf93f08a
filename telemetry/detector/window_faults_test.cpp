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

/// In each of these jobs every rank posts for its two neighbors and starts for them, `rounds` times, and then waits in
/// MPI_Win_wait or MPI_Win_start, but rank 1 has given another group at last.
class WrongGroup : public WindowFaults {
 protected:
  static constexpr unsigned rounds = 3;
  WrongGroup() {
    for (int rank = 0; rank < 4; ++rank)
      for (const int other : {(rank + 1) % 4, (rank + 3) % 4})
        epoch(job, rank, other) = {sample_window, other, rounds, rounds, rounds - 1};
    for (int rank = 0; rank < 4; ++rank) {
      bestride::telemetry::finished(job, rank, "MPI_Win_post", no_rank);
      job.call(rank, "MPI_Win_start", no_rank, sample_window);
    }
  }
  /// It has left its access epoch.
  void waits(int rank, const char* function) {
    bestride::telemetry::finished(job, rank, "MPI_Win_start", no_rank);
    bestride::telemetry::finished(job, rank, "MPI_Win_complete", no_rank);
    for (EpochSnapshot& each : job.ranks[static_cast<std::size_t>(rank)].epochs) each.completes = each.starts;
    if (std::string(function) == "MPI_Win_wait") job.call(rank, function, no_rank, sample_window);
    if (std::string(function) == "MPI_Barrier") {
      bestride::telemetry::finished(job, rank, "MPI_Win_wait", no_rank);
      job.collective(rank, "MPI_Barrier");
    }
  }
  /// The pair of the finding, as text.
  std::string pair(double seconds = 2, const Ranks& culprits = {1}) {
    const Finding found = expect_one(observe(seconds), Fault::mismatch, culprits);
    if (!found.epoch) return "";
    return std::to_string(found.epoch->waiter) + (found.epoch->group ? " is not in the group of " : " waits for ") +
           std::to_string(found.epoch->other) + ": " + found.epoch->missing;
  }
};

TEST_F(WrongGroup, OfAPostThatLacksARank) {
  --epoch(job, 1, 0).posts;
  waits(1, "MPI_Barrier"), waits(2, "MPI_Barrier"), waits(3, "MPI_Win_wait");
  EXPECT_EQ(pair(), "0 is not in the group of 1: MPI_Win_post");
}

TEST_F(WrongGroup, OfAPostThatHasOneTooMany) {
  epoch(job, 1, 3).posts = 1;
  waits(1, "MPI_Win_wait"), waits(0, "MPI_Barrier"), waits(2, "MPI_Barrier"), waits(3, "MPI_Barrier");
  EXPECT_EQ(pair(), "1 is not in the group of 3: MPI_Win_start");
}

TEST_F(WrongGroup, OfAPostForAnother) {
  --epoch(job, 1, 0).posts;
  epoch(job, 1, 3).posts = 1;
  waits(1, "MPI_Win_wait"), waits(2, "MPI_Win_wait");
  EXPECT_EQ(pair(40), "0 is not in the group of 1: MPI_Win_post")
      << "rank 3 waits in MPI_Win_start, although all have posted";
}

TEST_F(WrongGroup, OfAStartThatLacksARank) {
  --epoch(job, 1, 0).starts;
  waits(0, "MPI_Win_wait");
  for (const int rank : {1, 2, 3}) waits(rank, "MPI_Barrier");
  EXPECT_EQ(pair(40), "0 is not in the group of 1: MPI_Win_start");
}

TEST_F(WrongGroup, OfAStartThatHasOneTooMany) {
  epoch(job, 1, 3).starts = 1;
  waits(0, "MPI_Win_wait"), waits(2, "MPI_Win_wait");
  epoch(job, 1, 0).completes = epoch(job, 1, 2).completes = rounds - 1;
  EXPECT_EQ(pair(40), "1 is not in the group of 3: MPI_Win_post");
}

/// Rank 2 is no part of the cycle, but its barrier shows that it has not posted for rank 1.
TEST_F(WindowFaults, AWrongGroupWhoseEpochHasEnded) {
  epoch(job, 1, 3).starts = epoch(job, 1, 3).completes = 1;
  epoch(job, 2, 1).posts = 1;
  job.call(2, "MPI_Win_wait", no_rank, sample_window);
  all_in_barrier_but(2);
  EXPECT_EQ(expect_one(observe(2), Fault::mismatch, Ranks{1}).epoch->waiter, 2);
}

/// Who of the two is wrong is not known in the first round.
TEST_F(WrongGroup, InTheFirstRound) {
  for (int rank = 0; rank < 4; ++rank)
    for (const int other : {(rank + 1) % 4, (rank + 3) % 4}) epoch(job, rank, other) = {sample_window, other, 1, 1, 0};
  epoch(job, 1, 0).posts = 0;
  waits(1, "MPI_Barrier"), waits(2, "MPI_Barrier"), waits(3, "MPI_Win_wait");
  pair(2, {0, 1});
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
