// SPDX-License-Identifier: Apache-2.0
// Jobs in which no rank does anything, although none waits for another one.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

constexpr Limits default_limits;

class QuietJob : public Detection {
 protected:
  QuietJob() : Detection(4, default_limits) { observe(1); }
  /// All ranks are outside MPI in this state.
  void block(char state, const char* channel) {
    for (int rank = 0; rank < 4; ++rank) {
      thread(rank).state = state;
      thread(rank).channel = channel;
    }
  }
  RankSnapshot& rank(int number) { return job.ranks[static_cast<std::size_t>(number)]; }
  /// All ranks poll `times` in a second, for so many seconds; each poll takes `cpu_seconds` of the thread's time.
  std::vector<Finding> poll(double seconds, double times, double cpu_seconds) {
    std::vector<Finding> found;
    for (double passed = 0; passed < seconds; passed += 0.25) {
      for (RankSnapshot& each : job.ranks) {
        each.threads[0].polling = true;
        each.threads[0].poll_function = number_of("MPI_Iprobe");
        each.threads[0].polls += static_cast<std::uint64_t>(0.25 * times);
        each.threads[0].cpu_seconds += 0.25 * times * cpu_seconds;
      }
      found = observe(0.25);
      if (!found.empty()) break;
    }
    return found;
  }
  const Ranks all{0, 1, 2, 3};
};

TEST_F(QuietJob, AllAreBlocked) {
  block('S', "anon_pipe_read");
  EXPECT_TRUE(observe(15).empty());
  EXPECT_TRUE(detector.working().empty());
  EXPECT_TRUE(observe(43).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].culprits, all);
  EXPECT_TRUE(detector.working()[0].whole_job);
  const Finding found = expect_one(observe(3), Fault::computation_hang, all);
  EXPECT_EQ(found.cause, Cause::blocked);
  EXPECT_EQ(found.confidence, 0.8);
  EXPECT_TRUE(found.whole_job && found.held_up.empty());
  EXPECT_TRUE(detector.working().empty());
}

TEST_F(QuietJob, TheOnlyRank) {
  job = SampleJob(1);
  RankSnapshot& only = rank(0);
  only.visible = true, only.threads[0].state = 'S', only.use.cpu_seconds = 0;
  only.threads[0].channel = "futex_wait_queue";
  expect_one(observe(62), Fault::computation_hang, Ranks{0});
}

TEST_F(QuietJob, TheyWaitForAFileSystem) {
  block('D', "nfs_wait_bit_killable");
  EXPECT_EQ(expect_one(observe(61), Fault::computation_hang, all).cause, Cause::uninterruptible);
}

TEST_F(QuietJob, TheyLookForAFile) {
  block('S', "hrtimer_nanosleep");
  for (int i = 0; i < 58; ++i) {
    for (RankSnapshot& each : job.ranks) ++each.use.sleeps;
    EXPECT_TRUE(observe(1).empty());
  }
  const Finding found = expect_one(observe(3), Fault::computation_hang, all);
  EXPECT_EQ(found.cause, Cause::sleeping);
  EXPECT_EQ(found.confidence, 0.6);
}

/// What was written before is no reason why others wait.
TEST_F(QuietJob, OneSleepsAfterItHasWritten) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Bcast");
  EXPECT_TRUE(observe(1).empty());
  thread(3).state = 'S';
  thread(3).channel = "hrtimer_nanosleep";
  job.ranks[3].use.io_bytes += 4096;
  for (int i = 0; i < 20 && detector.working().empty(); ++i) EXPECT_TRUE(observe(0.25).empty());
  EXPECT_EQ(detector.working().at(0).cause, Cause::sleeping);
}

TEST_F(QuietJob, TheyWriteToAPipeThatNobodyReads) {
  block('S', "anon_pipe_write");
  EXPECT_EQ(expect_one(observe(62), Fault::computation_hang, all).cause, Cause::transferring);
}

TEST_F(QuietJob, TheyPollForAMessageThatNobodySends) {
  EXPECT_TRUE(poll(58, 1e6, 1e-6).empty());
  EXPECT_EQ(expect_one(poll(3, 1e6, 1e-6), Fault::computation_hang, all).cause, Cause::polling);
}

TEST_F(QuietJob, TheyComputeBetweenTheirPolls) {
  EXPECT_TRUE(poll(200, 1e4, 100e-6).empty());
  EXPECT_TRUE(detector.working().empty());
}

/// The CPU of two threads; the polling one uses all of its own for that.
TEST_F(QuietJob, TheyPollWhileAnotherThreadComputes) {
  for (int i = 0; i < 400; ++i) {
    for (RankSnapshot& each : job.ranks) each.use.cpu_seconds += 0.25;
    ASSERT_TRUE(poll(0.25, 1e6, 1e-6).empty());
  }
}

TEST_F(QuietJob, TheyCompute) {
  EXPECT_TRUE(observe(300).empty());
  EXPECT_TRUE(detector.working().empty());
}

TEST_F(QuietJob, OneComputes) {
  block('S', "futex_wait_queue");
  thread(2).state = 'R';
  EXPECT_TRUE(observe(300).empty());
  EXPECT_TRUE(detector.working().empty());
}

/// The main thread waits for the others.
TEST_F(QuietJob, ThreadsOfOneCompute) {
  block('S', "futex_wait_queue");
  for (int i = 0; i < 800; ++i) {
    rank(1).use.cpu_seconds += 0.25 * 0.05;
    ASSERT_TRUE(observe(0.25).empty());
  }
}

TEST_F(QuietJob, AHelperThreadThatWakesUpIsNoWork) {
  block('S', "futex_wait_queue");
  for (int i = 0; i < 58; ++i) {
    for (RankSnapshot& each : job.ranks) each.use.cpu_seconds += 0.01;
    EXPECT_TRUE(observe(1).empty());
  }
  EXPECT_FALSE(observe(3).empty());
}

TEST_F(QuietJob, ChildrenOfOneWork) {
  block('S', "do_wait");
  for (int i = 0; i < 100; ++i) {
    rank(3).wait.children += 10;
    EXPECT_TRUE(observe(3).empty());
  }
}

TEST_F(QuietJob, OneReads) {
  block('S', "anon_pipe_read");
  for (int i = 0; i < 20; ++i) {
    rank(3).use.io_bytes += 1;
    EXPECT_TRUE(observe(15).empty());
  }
}

/// A connection may bring work at any time.
TEST_F(QuietJob, OneMayBeServed) {
  block('S', "futex_wait_queue");
  rank(0).wait.may_be_served = true;
  EXPECT_TRUE(observe(300).empty());
  EXPECT_EQ(detector.working().at(0).culprits, all);
}

TEST_F(QuietJob, OneIsNotWatched) {
  block('S', "futex_wait_queue");
  for (RankSnapshot& each : job.ranks) each.world_size = 5;
  EXPECT_TRUE(observe(300).empty());
}

/// A process that was spawned, first without a rank and then with a rank of another MPI_COMM_WORLD.
TEST_F(QuietJob, AnotherProcessOfTheJob) {
  block('S', "futex_wait_queue");
  job.ranks.push_back(rank(3));
  rank(4).pid = 2000;
  rank(4).world_rank = -1;
  EXPECT_TRUE(observe(300).empty());
  rank(4).world_rank = 0;
  thread(4).state = 'R';
  EXPECT_TRUE(observe(300).empty());
}

/// A coupled program that has had to wait for 30 s before has a limit of 90 s.
TEST_F(QuietJob, LongerPausesAfterOneThatEnded) {
  block('S', "hrtimer_nanosleep");
  EXPECT_TRUE(observe(30).empty());
  for (int number = 0; number < 4; ++number) ++thread(number).calls;
  EXPECT_TRUE(observe(88).empty());
  EXPECT_FALSE(observe(4).empty());
}

TEST_F(QuietJob, AStopIsNoPause) {
  block('T', "");
  for (const Finding& found : observe(100)) EXPECT_EQ(found.fault, Fault::stopped);
  block('R', "");
  EXPECT_TRUE(observe(50).empty());
}

TEST_F(QuietJob, WhenTheyGoOnTheFindingEnds) {
  block('S', "anon_pipe_read");
  EXPECT_FALSE(observe(62).empty());
  // Copying their stacks wakes them.
  for (RankSnapshot& each : job.ranks) ++each.use.sleeps, each.threads[0].state = 'R';
  EXPECT_FALSE(detector.observe({163.1, job.ranks}).empty());
  block('R', "");
  EXPECT_TRUE(observe(0.5).empty());
}

/// They end one after the other, and none has ended yet.
TEST_F(QuietJob, AfterFinalize) {
  block('S', "futex_wait_queue");
  for (RankSnapshot& each : job.ranks) {
    each.state = ProcessState::finalized;
    ++each.threads[0].calls;
  }
  EXPECT_TRUE(observe(58).empty());
  expect_one(observe(3), Fault::computation_hang, all);
}

}  // namespace
