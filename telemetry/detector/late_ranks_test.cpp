// SPDX-License-Identifier: Apache-2.0
// Ranks for which others wait for too long, and calls that do not end.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

/// Copying its stack wakes a rank that is blocked, which looks as if data had come.
TEST_F(Detection, ARankThatIsBlockedStaysSoUntilItsNextCall) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "anon_pipe_read";
  EXPECT_EQ(expect_one(observe(6), Fault::computation_hang, Ranks{3}).cause, Cause::blocked);
  for (int i = 0; i < 4; ++i) {
    ++job.ranks[3].use.sleeps;
    EXPECT_EQ(expect_one(observe(0.5), Fault::computation_hang, Ranks{3}).cause, Cause::blocked);
  }
  job.collective(3, "MPI_Allreduce");
  EXPECT_TRUE(observe(0.25).empty());
}

/// A batch system stops the job and its observer for a time.
TEST_F(Detection, WhatWasNotObservedIsNoEvidence) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  EXPECT_TRUE(observe(1).empty());
  skip(100);
  EXPECT_TRUE(observe(2).empty());
  const Finding found = expect_one(observe(3), Fault::computation_hang, Ranks{3});
  EXPECT_LT(found.since, 102);  // but the time of its last call is
}

TEST_F(Detection, ARankThatWasHeldHasDoneNothingWrong) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'T';
  expect_one(observe(100), Fault::stopped, Ranks{3});
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  EXPECT_TRUE(observe(3).empty());
  expect_one(observe(3), Fault::computation_hang, Ranks{3});
}

/// As by a tool that limits the CPU time of a rank: a fault of another rank is found.
TEST_F(Detection, ARankThatIsHeldAgainAndAgain) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  std::vector<Finding> found;
  for (int i = 0; i < 20; ++i) {
    thread(0).state = 'T';
    observe(0.25);
    thread(0).state = 'R';
    found = observe(0.75);
  }
  expect_one(found, Fault::computation_hang, Ranks{3});
}

/// The longest wait of the job is that of its own doing.
TEST_F(Detection, APauseIsNoLongWait) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  observe(1);
  skip(100);
  observe(1);
  job.collective(3, "MPI_Allreduce");
  for (const int rank : {0, 1, 2, 3}) leave_mpi(rank);
  observe(0.5);
  EXPECT_GT(detector.longest_wait(), 1);
  EXPECT_LT(detector.longest_wait(), 3);
}

TEST_F(Detection, ARankThatComputesForEver) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe(3).empty());
  const Finding found = expect_one(observe(2), Fault::computation_hang, Ranks{3});
  EXPECT_EQ(found.cause, Cause::computing);
}

TEST_F(PatientDetection, ARankThatComputesLongMayDoItsWork) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe(3).empty());
  EXPECT_TRUE(detector.working().empty());
  EXPECT_TRUE(observe(55).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].culprits, Ranks{3});
  EXPECT_EQ(detector.working()[0].cause, Cause::computing);
  EXPECT_EQ(detector.working()[0].held_up, (Ranks{0, 1, 2}));
  const Finding found = expect_one(observe(4), Fault::computation_hang, Ranks{3});
  EXPECT_EQ(found.confidence, 0.6);
  EXPECT_TRUE(detector.working().empty());
}

/// It looks for a file once a second.
TEST_F(PatientDetection, ARankThatSleepsAgainAndAgain) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Bcast");
  thread(3).state = 'S';
  thread(3).channel = "hrtimer_nanosleep";
  for (int i = 0; i < 200; ++i) {
    job.ranks[3].use.sleeps += i % 4 == 0;
    EXPECT_TRUE(observe(0.25).empty());
  }
  EXPECT_EQ(detector.working().at(0).cause, Cause::sleeping);
}

TEST_F(PatientDetection, ARankThatIsBlockedDoesNothingByItself) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  EXPECT_EQ(observe(5).at(0).cause, Cause::blocked);
}

/// A child process, a pipe, a lock of a file, a signal: it may go on.
TEST_F(PatientDetection, ARankThatWaitsForSomethingOutsideMpi) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "do_wait";
  job.ranks[3].wait.may_go_on = true;
  EXPECT_TRUE(observe(55).empty());
  EXPECT_EQ(detector.working().at(0).cause, Cause::waiting);
  EXPECT_EQ(expect_one(observe(8), Fault::computation_hang, Ranks{3}).cause, Cause::waiting);
}

/// Rank 3 comes late to MPI_Finalize, which takes the others a moment to leave, and ends.
TEST_F(PatientDetection, ALateRankDoesNotMakeTheOthersHang) {
  for (const int rank : {0, 1, 2}) {
    job.call(rank, "MPI_Finalize");
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalizing;
  }
  observe(20);
  job.call(3, "MPI_Finalize");
  ++thread(3).calls;
  job.ranks[3].state = ProcessState::finalizing;
  EXPECT_TRUE(observe(0.5).empty());
  leave_mpi(3);
  job.ranks[3].state = ProcessState::finalized;
  EXPECT_TRUE(observe(0.5).empty());
  job.kill(3);
  job.ranks[3].ended = 121;
  EXPECT_TRUE(observe(5).empty());
  EXPECT_EQ(observe(90).at(0).fault, Fault::communication_hang);
}

/// An operation of a reduction, for example, that reads a pipe.
TEST_F(PatientDetection, AFunctionOfTheProgramThatMpiHasCalled) {
  for (const int rank : {0, 1, 2, 3}) job.collective(rank, "MPI_Allreduce");
  thread(2).state = 'S';
  thread(2).channel = "anon_pipe_read";
  EXPECT_TRUE(observe(50).empty());
  EXPECT_EQ(detector.working().at(0).culprits, Ranks{2});
  const Finding found = expect_one(observe(12), Fault::computation_hang, Ranks{2});
  EXPECT_EQ(found.cause, Cause::waiting);
}

/// It has begun the call, but the library may need it to go on.
TEST_F(Detection, ARankThatHasBegunANonblockingCallAndDoesNotCompleteIt) {
  for (const int rank : {0, 1, 2, 3}) {
    RequestSnapshot& request = job.request(rank, "MPI_Iallreduce", no_rank);
    request.ordinal = 1;
    job.ranks[static_cast<std::size_t>(rank)].communicators[0].collectives = 1;
    if (rank == 3)
      request.waiter = 0;
    else
      job.call(rank, "MPI_Wait");
  }
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  const Finding found = expect_one(observe(5), Fault::computation_hang, Ranks{3});
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 2}));
}

TEST_F(PatientDetection, AStageOfAPipelineHoldsUpTheOnesAfterIt) {
  observe(1);
  for (int stage = 0; stage < 4; ++stage) {
    for (int rank = stage + 1; rank < 4; ++rank) job.call(rank, "MPI_Recv", rank - 1);
    EXPECT_TRUE(observe(6).empty()) << "stage " << stage;
    leave_mpi(stage);
    if (stage < 3) leave_mpi(stage + 1);
  }
}

class AfterFinalize : public PatientDetection {
 protected:
  AfterFinalize() {
    observe(1);
    for (RankSnapshot& rank : job.ranks) {
      rank.state = ProcessState::finalized;
      ++rank.threads[0].calls;
    }
  }
  void end(const Ranks& ranks) {
    for (const int rank : ranks) job.ranks[static_cast<std::size_t>(rank)].alive = false;
  }
};

TEST_F(AfterFinalize, ARankThatIsBlocked) {
  end({0, 1, 3});
  thread(2).state = 'S';
  thread(2).channel = "futex_wait_queue";
  EXPECT_TRUE(observe(3).empty());
  EXPECT_EQ(expect_one(observe(2), Fault::computation_hang, Ranks{2}).cause, Cause::blocked);
  end({2});
  EXPECT_TRUE(observe(1).empty());
}

TEST_F(AfterFinalize, ARankThatWritesResults) {
  end({0, 1, 3});
  for (int i = 0; i < 200; ++i) {
    job.ranks[2].use.io_bytes += 1000;
    EXPECT_TRUE(observe(0.25).empty());
  }
  EXPECT_EQ(detector.working().at(0).culprits, Ranks{2});
}

TEST_F(AfterFinalize, AllAreBusy) {
  EXPECT_TRUE(observe(100).empty());
  EXPECT_TRUE(detector.working().empty());
}

/// Each of its requests may be complete, but all are with rank 1 or with itself, and it does not go on.
TEST_F(Detection, ARankWhoseOnlyPeerDoesNotCall) {
  job = SampleJob(2);
  for (RankSnapshot& rank : job.ranks) rank.visible = true, rank.threads[0].state = 'R', rank.use.cpu_seconds = 0;
  observe(1);
  job.call(0, "MPI_Waitall");
  job.request(0, "MPI_Irecv", 1);
  job.request(0, "MPI_Irecv", 0);
  job.request(0, "MPI_Isend", 0);
  // As many messages as it has asked for have come from each.
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 1, 8});
  job.ranks[1].peers.push_back({no_index, 0, 1, 8, 0, 0});
  EXPECT_FALSE(observe(3).size());
  expect_one(observe(2), Fault::computation_hang, Ranks{1});
}

TEST_F(Detection, ARankWhoseOnlyPeerLeftForFinalize) {
  observe(1);
  job.call(0, "MPI_Waitall");
  job.request(0, "MPI_Irecv", 1);
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 1, 8});
  job.ranks[1].peers.push_back({no_index, 0, 1, 8, 0, 0});
  for (const int rank : {1, 2, 3}) {
    job.call(rank, "MPI_Finalize");
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalizing;
  }
  EXPECT_TRUE(observe(3).empty());
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{1});
  EXPECT_EQ(found.cause, Cause::finalized);
}

TEST_F(Detection, ARankWithSeveralPeersThatMayHaveSent) {
  observe(1);
  job.call(0, "MPI_Waitall");
  for (const int peer : {1, 2}) {
    job.request(0, "MPI_Irecv", peer);
    job.ranks[0].peers.push_back({no_index, static_cast<std::uint32_t>(peer), 0, 0, 1, 8});
    job.ranks[static_cast<std::size_t>(peer)].peers.push_back({no_index, 0, 1, 8, 0, 0});
  }
  EXPECT_TRUE(observe(10).empty()) << "either may be what it waits for";
}

/// The master would take a result of any rank, but all others wait.
TEST_F(Detection, TheOnlyRankOutsideMpi) {
  for (const int rank : {1, 2}) job.call(rank, "MPI_Recv", 0);
  job.call(0, "MPI_Recv", any_rank);
  EXPECT_TRUE(observe(3).empty());
  expect_one(observe(2), Fault::computation_hang, Ranks{3});
}

TEST_F(Detection, OneOfTwoRanksOutsideMpiMayBeComputing) {
  job.call(1, "MPI_Recv", 0);
  job.call(0, "MPI_Recv", any_rank);
  EXPECT_TRUE(observe(15).empty());
}

TEST_F(Detection, ARankThatSleeps) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'S';
  thread(3).channel = "futex_wait_queue";
  EXPECT_EQ(observe(5).at(0).cause, Cause::blocked);
}

TEST_F(Detection, AMasterThatWaitsForItsWorkersIsNoFault) {
  job.call(0, "MPI_Recv", any_rank);
  EXPECT_TRUE(observe(18).empty());
}

TEST_F(Detection, AMasterThatWaitsForItsOnlyWorkerIsNoFaultForLonger) {
  job = SampleJob(2);
  for (RankSnapshot& rank : job.ranks) rank.visible = true, rank.threads[0].state = 'R', rank.use.cpu_seconds = 0;
  job.call(0, "MPI_Recv", any_rank);
  EXPECT_TRUE(observe(9).empty());
  expect_one(observe(2), Fault::computation_hang, Ranks{1});
}

TEST_F(Detection, AMinorityThatWaitsIsNoFault) {
  job.collective(0, "MPI_Barrier");
  EXPECT_TRUE(observe(18).empty()) << "the other three compute";
  EXPECT_EQ(observe(4).at(0).culprits, (Ranks{1, 2, 3}));
}

TEST_F(PatientDetection, ACheckpointOfOneRankIsNoFault) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Barrier");
  thread(3).state = 'S';
  thread(3).channel = "pipe_write";
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(observe(0.25).empty());
  }
}

TEST_F(PatientDetection, AReaderThatGetsItsDataSlowlyIsNoFault) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Barrier");
  thread(3).state = 'S';
  thread(3).channel = "anon_pipe_read";
  for (int i = 0; i < 100; ++i) {
    job.ranks[3].use.sleeps += i % 8 == 0;  // every two seconds
    EXPECT_TRUE(observe(0.25).empty());
  }
  EXPECT_FALSE(observe(4).empty()) << "it gets no more";
}

TEST_F(Detection, AWaitThatEndedRaisesTheLimit) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  observe(3);
  job.collective(3, "MPI_Allreduce");
  ++thread(3).calls;
  for (int rank = 0; rank < 3; ++rank) leave_mpi(rank);
  observe(0.25);
  EXPECT_NEAR(detector.longest_wait(), 3, 0.3);
  leave_mpi(3);
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe(8).empty());
  EXPECT_FALSE(observe(2).empty());
}

TEST_F(Detection, EverybodyIsInTheCollective) {
  for (int rank = 0; rank < 4; ++rank) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe(9).empty());
  expect_one(observe(2), Fault::communication_hang, Ranks{0, 1, 2, 3});
}

/// As a function of MPI_Op_create, or one that copies an attribute.
TEST_F(PatientDetection, AFunctionOfTheProgramThatTheLibraryHasCalledMayWork) {
  for (int rank = 0; rank < 4; ++rank) job.collective(rank, "MPI_Allreduce");
  EXPECT_TRUE(observe(9).empty());
  expect_one(observe(2), Fault::communication_hang, Ranks{0, 1, 2, 3});
  EXPECT_TRUE(detector.call_back({2}));
  EXPECT_TRUE(observe(45).empty());
  const Finding working = expect_one(detector.working(), Fault::computation_hang, Ranks{2});
  EXPECT_EQ(working.cause, Cause::computing);
  EXPECT_FALSE(detector.call_back({2})) << "it is known";
  expect_one(observe(6), Fault::computation_hang, Ranks{2});
  leave_mpi(2);
  job.collective(2, "MPI_Allreduce");
  EXPECT_TRUE(observe(9).empty());
  expect_one(observe(200), Fault::communication_hang, Ranks{0, 1, 3});  // rank 2 has left the call
}

TEST_F(Detection, TheRankThatSleepsOnALockInsideItsCall) {
  for (int rank = 0; rank < 4; ++rank) job.collective(rank, "MPI_Allreduce");
  thread(2).state = 'S';
  thread(2).channel = "futex_wait_queue";
  EXPECT_EQ(observe(11).at(0).culprits, Ranks{2});
}

/// Rank 0 holds the lock of a file, or a mutex of several processes, for which ranks 1 to 3 wait.
class LockedOut : public Detection {
 protected:
  explicit LockedOut(const Limits& limits = {.working = 4}) : Detection(4, limits) {
    for (const int rank : {1, 2, 3}) {
      thread(rank).state = 'S';
      thread(rank).channel = "locks_lock_inode_wait";
      each(rank).wait = {"flock of /tmp/log", each(0).pid, false, false, true, 0};
    }
  }
  RankSnapshot& each(int rank) { return job.ranks[static_cast<std::size_t>(rank)]; }
};
class PatientLockedOut : public LockedOut {
 protected:
  PatientLockedOut() : LockedOut(Limits{}) {}
};

TEST_F(PatientLockedOut, ByARankThatWaitsForThem) {
  job.collective(0, "MPI_Barrier");
  const Finding found = expect_one(observe(4), Fault::deadlock, Ranks{0});
  EXPECT_EQ(found.held_up, (Ranks{1, 2, 3}));
  EXPECT_EQ(found.cycle.size(), 2u);
  for (const int rank : {1, 2, 3}) ++each(rank).use.sleeps;  // their stacks are copied
  expect_one(observe(0.25), Fault::deadlock, Ranks{0});
}

TEST_F(PatientLockedOut, ByARankThatWaitsForAMessageOfOne) {
  job.call(0, "MPI_Recv", 2);
  const Finding found = expect_one(observe(4), Fault::deadlock, Ranks{0});
  EXPECT_FALSE(found.tags || found.omitted || found.alone);
}

TEST_F(LockedOut, ByARankThatComputes) {
  const Finding found = expect_one(observe(8), Fault::computation_hang, Ranks{0});
  EXPECT_EQ(found.cause, Cause::computing);
  EXPECT_EQ(found.held_up, (Ranks{1, 2, 3}));
}

/// Each of them gets the lock now and then.
TEST_F(LockedOut, ForMomentsIsNoFault) {
  for (int i = 0; i < 40; ++i) {
    for (const int rank : {1, 2, 3}) ++each(rank).use.sleeps;
    EXPECT_TRUE(observe(0.5).empty());
  }
}

/// A thread of the holder may release it while the main one waits.
TEST_F(PatientLockedOut, ByARankWithAnotherThread) {
  for (const int rank : {1, 2, 3}) each(rank).wait.holder_may_release = true;
  job.collective(0, "MPI_Barrier");
  EXPECT_TRUE(observe(50).empty());
  expect_one(observe(20), Fault::deadlock, Ranks{0});
}

/// As before: the holder is a process that is not part of the job.
TEST_F(LockedOut, ByAnotherProcess) {
  for (const int rank : {1, 2, 3}) each(rank).wait.holder = 4711;
  job.collective(0, "MPI_Barrier");
  EXPECT_EQ(expect_one(observe(30), Fault::computation_hang, Ranks{1, 2, 3}).cause, Cause::waiting);
}

/// Each message of rank 1 was received, the last one before rank 1 has completed its request.
TEST_F(Detection, APendingSendThatWasReceivedIsNoMatchForTheNextReceive) {
  for (const int rank : {0, 1}) job.call(rank, "MPI_Recv", 1 - rank).tag = 5;
  RequestSnapshot& request = job.request(1, "MPI_Isend", 0);
  request.tag = 5;
  request.waiter = 0;
  request.number = 7;
  job.ranks[1].peers.push_back({no_index, 0, 7, 56, 3, 24});
  job.ranks[0].peers.push_back({no_index, 1, 3, 24, 6, 48});
  EXPECT_TRUE(observe(3).empty()) << "the seventh is on its way";
  job.ranks[0].peers[0].received_messages = 7;
  EXPECT_EQ(observe(0.5).at(0).fault, Fault::deadlock);
}

/// As with a deadline after which one of them sends.
TEST_F(PatientDetection, PollingRanksMayDoSomethingElse) {
  poll_in_a_ring();
  EXPECT_TRUE(observe(50).empty());
  EXPECT_EQ(detector.working().at(0).cycle.size(), 4u);
  EXPECT_EQ(observe(11).at(0).fault, Fault::deadlock);
}

/// A worker probes while it works.
TEST_F(PatientDetection, AMasterMayWaitForARankThatPolls) {
  job.call(0, "MPI_Recv", any_rank);
  for (const int rank : {1, 3}) job.call(rank, "MPI_Recv", 0);
  thread(2).polling = thread(2).polled_known = thread(2).polls_one = true;
  thread(2).poll_function = number_of("MPI_Iprobe");
  ProbeSnapshot probe;
  probe.function = number_of("MPI_Iprobe");
  probe.communicator = 0;
  probe.peer = any_rank;
  probe.tag = 5;
  thread(2).probes.push_back(probe);
  EXPECT_TRUE(observe(50).empty());
}

/// With MPI_THREAD_MULTIPLE.
TEST_F(PatientDetection, AnotherThreadMaySendWhatIsWaitedFor) {
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Recv", (rank + 1) % 4);
  job.ranks[2].may_be_helped = true;
  EXPECT_TRUE(observe(50).empty());
  EXPECT_EQ(detector.working().at(0).cause, Cause::polling);
  job.ranks[2].may_be_helped = false;
  EXPECT_EQ(observe(0.5).at(0).fault, Fault::deadlock);
}

TEST_F(Detection, PollingRanksThatWaitForEachOther) {
  poll_in_a_ring();
  EXPECT_TRUE(observe(3).empty());
  EXPECT_EQ(observe(2).at(0).fault, Fault::deadlock);
}

/// Rank 2 receives what rank 1 has begun to send in partitions, which that has not all marked ready.
TEST_F(Detection, APartitionedSendThatDoesNotEnd) {
  job.request(1, "MPI_Psend_init", 2);
  job.call(1, "MPI_Wait");
  job.request(2, "MPI_Precv_init", 1);
  job.call(2, "MPI_Wait");
  job.ranks[1].peers.push_back({no_index, 2, 1, 8, 0, 0});
  job.ranks[2].peers.push_back({no_index, 1, 0, 0, 1, 8});
  for (const int rank : {0, 3}) job.collective(rank, "MPI_Barrier");
  const Finding found = expect_one(observe(12), Fault::unmatched_message, Ranks{1});
  EXPECT_TRUE(found.partitioned);
  EXPECT_LT(found.confidence, 0.8);
}

/// Rank 2 waits for the end of its thread that receives messages, which is sent none; or for a limited time.
TEST_F(PatientDetection, AThreadThatSleepsBesideAnotherOneInACall) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  job.call(2, "MPI_Recv", any_rank);
  ThreadSnapshot server = thread(2);
  server.slot = 1;
  server.tid = 202;
  server.state = 'S';
  thread(2).in_mpi = false;
  thread(2).current.reset();
  thread(2).state = 'S';
  thread(2).channel = "futex_wait_queue";
  job.ranks[2].threads.push_back(server);
  job.ranks[2].may_be_helped = true;
  EXPECT_TRUE(observe(55).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].culprits, Ranks{2});
  job.ranks[2].may_be_helped = false;
  EXPECT_TRUE(expect_one(observe(0.5), Fault::unmatched_message, Ranks{2}).alone);
  job.ranks[2].may_be_helped = true;
  EXPECT_TRUE(expect_one(observe(10), Fault::unmatched_message, Ranks{2}).alone);
}

}  // namespace
