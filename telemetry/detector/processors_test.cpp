// SPDX-License-Identifier: Apache-2.0
// Ranks that could run but do not get a processor: what they wait for may yet happen.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

constexpr Limits default_limits;

class Processors : public Detection {
 protected:
  Processors() : Detection(4, default_limits) { observe(1); }
  /// A rank that runs gets only this share of a processor. `counted`: the kernel tells how long it was in the queue.
  std::vector<Finding> observe_with(double share, int rank, bool counted, double seconds) {
    RankSnapshot& starved = job.ranks[static_cast<std::size_t>(rank)];
    std::vector<Finding> found;
    for (double passed = 0; passed < seconds; passed += 0.25) {
      starved.use.cpu_seconds -= 0.25 * (1 - share);
      if (counted) starved.use.queued_seconds += 0.25 * (1 - share);
      found = observe(0.25);
    }
    return found;
  }
  void all_in(const char* function) {
    for (int rank = 0; rank < 4; ++rank) job.collective(rank, function);
  }
};

TEST_F(Processors, CallsOfARankThatGetsFewMayEnd) {
  for (RankSnapshot& rank : job.ranks) rank.threads[0].state = 'S';  // seldom seen running
  all_in("MPI_Allreduce");
  EXPECT_TRUE(observe_with(0.05, 2, true, 60).empty());
  EXPECT_EQ(observe(10).at(0).fault, Fault::communication_hang) << "there are enough of them again";
}

/// The kernel counts the time in the queue only when it is over, or not at all.
TEST_F(Processors, ARankThatIsSeenInTheQueueHasNone) {
  for (RankSnapshot& rank : job.ranks) rank.use.queued_seconds = -1;
  all_in("MPI_Allreduce");
  EXPECT_TRUE(observe_with(0, 3, false, 60).empty());
}

TEST_F(Processors, AHangIsFoundAllTheSame) {
  all_in("MPI_Allreduce");
  EXPECT_TRUE(observe_with(0.1, 1, true, 40).empty());
  EXPECT_EQ(observe_with(0.1, 1, true, 20).at(0).fault, Fault::communication_hang);
}

/// As of two polling ranks on each core.
TEST_F(Processors, HalfAProcessorIsEnough) {
  all_in("MPI_Allreduce");
  EXPECT_TRUE(observe_with(0.5, 1, true, 9).empty());
  EXPECT_EQ(observe_with(0.5, 1, true, 2).at(0).fault, Fault::communication_hang);
}

TEST_F(Processors, AComputationTakesLonger) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe_with(0.1, 3, true, 200).empty());
  EXPECT_EQ(detector.working().at(0).culprits, Ranks{3});
  expect_one(observe_with(0.1, 3, true, 120), Fault::computation_hang, Ranks{3});
}

/// It waits for a lock of its own, whatever the others lack.
TEST_F(Processors, ARankThatIsBlockedStaysSo) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  expect_one(observe_with(0.05, 0, true, 6), Fault::computation_hang, Ranks{3});
}

TEST_F(Processors, ADeadlockNeedsNone) {
  observe_with(0, 0, true, 1);
  for (int rank = 0; rank < 4; ++rank) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ticks_per_second = 1e9;
    each.read_at = 2'000'000'000;
    job.call(rank, "MPI_Recv", (rank + 1) % 4).entered = each.read_at - 50'000'000;  // after the last observation
    ++thread(rank).calls;
  }
  EXPECT_EQ(observe_with(0, 0, true, 2).at(0).fault, Fault::deadlock);
}

TEST_F(Processors, AJobWithoutAnyIsNotQuiet) {
  for (double passed = 0; passed < 200; passed += 0.25) {
    for (RankSnapshot& rank : job.ranks) rank.use.cpu_seconds -= 0.25;
    EXPECT_TRUE(observe(0.25).empty());
  }
}

}  // namespace
