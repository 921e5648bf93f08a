// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/detection_fixture.hpp"
#include "telemetry/record/reduction.hpp"

using namespace bestride;

namespace {

TEST_F(Detection, ARunningJobHasNoFinding) {
  moving = {0, 1, 2, 3};
  EXPECT_TRUE(observe(60).empty());
  EXPECT_FALSE(detector.suspects());
}

TEST_F(Detection, OfRanksThatAreHeardADeadlockIsCertain) {
  observe(1);
  job.ranks[3].unheard = 4;
  job.call(0, "MPI_Ssend", 1);
  job.call(1, "MPI_Ssend", 0);
  expect_one(observe(2), Fault::deadlock, Ranks{0, 1});
}

TEST_F(Detection, ARankThatIsNotHeardMayYetComeToTheCall) {
  observe(1);
  job.ranks[3].unheard = 4;
  job.call(0, "MPI_Ssend", 1);
  job.call(1, "MPI_Ssend", 2);
  job.call(2, "MPI_Ssend", 3);
  job.call(3, "MPI_Ssend", 0);  // so it was when it was heard last
  EXPECT_TRUE(observe(60).empty());
  job.ranks[3].unheard = 0;
  expect_one(observe(2), Fault::deadlock, Ranks{0, 1, 2, 3});
}

TEST_F(Detection, OldNewsOfARankAreNoWait) {
  moving = {0, 1, 2};
  job.call(3, "MPI_Recv", 0);
  observe(1);
  job.ranks[3].unheard = 0.2;  // its agent answers late, again and again
  EXPECT_TRUE(observe(10).empty());
  EXPECT_FALSE(detector.suspects());
  job.ranks[3].unheard = 0;
  ++thread(3).calls;
  observe(0.25);
  EXPECT_LT(detector.longest_wait(), 2);
}

TEST_F(Detection, ProcessesOfTwoHostsWithOnePid) {
  for (RankSnapshot& rank : job.ranks) rank.pid = 17, rank.host = "node" + std::to_string(rank.world_rank);
  for (const int rank : {0, 1, 2, 3}) thread(rank).calls = static_cast<std::uint64_t>(10 * rank + 1);
  moving = {0, 1, 2, 3};
  observe(2);
  for (const int rank : {1, 2, 3}) job.collective(rank, "MPI_Allreduce");
  moving.clear();
  expect_one(observe(8), Fault::computation_hang, Ranks{0});
}

TEST_F(Detection, ADeadlockAfterASecond) {
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Recv", (rank + 1) % 4);
  expect_one(observe(2), Fault::deadlock, Ranks{0, 1, 2, 3});
  EXPECT_GE(first(), 101);
}

TEST_F(Detection, ALongTransferIsNoDeadlock) {
  for (int rank = 0; rank < 4; ++rank) {
    CallSnapshot& call = job.call(rank, "MPI_Sendrecv", rank ^ 1);
    call.second_peer = rank ^ 1;
    call.tag = call.second_tag = 5;
  }
  EXPECT_TRUE(observe(8).empty());
  EXPECT_EQ(observe(4).at(0).fault, Fault::communication_hang);
}

TEST_F(Detection, ATransferThatDoesNotEndWhileOthersCompute) {
  for (const int rank : {0, 1}) {
    CallSnapshot& call = job.call(rank, "MPI_Sendrecv", 1 - rank);
    call.second_peer = 1 - rank;
  }
  EXPECT_TRUE(observe(9).empty());
  expect_one(observe(2), Fault::communication_hang, Ranks{0, 1});
}

TEST_F(Detection, AShortSendThatBlocksNeedsItsReceiver) {
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Send", (rank + 1) % 4).bytes = 8;
  EXPECT_EQ(observe(2).at(0).fault, Fault::deadlock);
}

TEST_F(Detection, CollectivesOnTwoCommunicatorsInDifferentOrder) {
  job.communicator(7, {0, 1, 2, 3});
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  job.collective(3, "MPI_Allreduce", no_rank, 1);
  // the one that differs from the others
  expect_one(observe(2), Fault::deadlock, Ranks{3});
}

/// Ranks 0 and 2 have nothing to do with the call in which rank 1 waits, so that they are not in it shows nothing.
TEST_F(Detection, OrdersOnCommunicatorsWithOtherMembersHaveNoMinority) {
  job.communicator(7, {1, 3});
  for (const int rank : {0, 2, 3}) job.collective(rank, "MPI_Allreduce");
  job.collective(1, "MPI_Allreduce", no_rank, 1);
  expect_one(observe(2), Fault::deadlock, Ranks{1, 3});
}

/// Those that make calls now wait for each other. The initial threads, which have made the first ones, have ended.
TEST_F(PatientDetection, ADeadlockWithoutTheInitialThreads) {
  for (const int rank : {0, 1, 2, 3}) {
    ThreadSnapshot initial = thread(rank);
    initial.state = 'Z';
    thread(rank).slot = 1;
    thread(rank).tid += 50;
    job.call(rank, "MPI_Recv", (rank + 1) % 4);
    job.ranks[static_cast<std::size_t>(rank)].threads.insert(job.ranks[static_cast<std::size_t>(rank)].threads.begin(),
                                                             initial);
  }
  EXPECT_EQ(observe(2).at(0).fault, Fault::deadlock);
}

/// Of two ranks, the one whose arguments have changed; in another function it may be ahead of the other.
TEST_F(Detection, OtherArgumentsThanBefore) {
  for (const int rank : {0, 1}) {
    job.collective(rank, "MPI_Allreduce").bytes = 1000;
    thread(rank).finished.push_back(*thread(rank).current);
    job.collective(rank, "MPI_Allreduce").bytes = rank == 0 ? 1000 : 900;
  }
  observe(1);
  const Finding found = expect_one(observe(1), Fault::mismatch, Ranks{1});
  EXPECT_EQ(found.confidence, 0.8);
  thread(1).current->function = number_of("MPI_Bcast");
  EXPECT_EQ(expect_one(observe(1), Fault::mismatch, (Ranks{0, 1})).confidence, 0.9);
}

TEST_F(Detection, AnotherCollectiveIsAMismatchOfTheMinority) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  job.collective(2, "MPI_Barrier");
  expect_one(observe(2), Fault::mismatch, Ranks{2});
}

/// As many free the communicator, which does not wait, as wait in a call on it.
TEST_F(Detection, OfAsManyThoseThatEndHaveLeftTheOthers) {
  job.communicator(7, {0, 1, 2, 3});
  for (const int rank : {0, 1}) job.collective(rank, "MPI_Bcast", 0, 1);
  for (const int rank : {2, 3}) {
    CallSnapshot call;
    call.function = number_of("MPI_Comm_free");
    call.communicator = 1;
    call.ordinal = 1;
    thread(rank).finished.push_back(call);
    job.call(rank, "MPI_Finalize");
  }
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalizing;
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{2, 3});
  EXPECT_TRUE(found.mismatch);
}

/// A broadcast with another root that has ended on all ranks.
TEST_F(Detection, AWrongCallThatDoesNotHang) {
  moving = {0, 1, 2, 3};
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    CallSnapshot call;
    call.number = thread(rank).finished.size();
    call.function = number_of("MPI_Bcast");
    call.communicator = 0;
    call.ordinal = 7;
    call.peer = rank == 1 ? 2 : 0;
    thread(rank).finished.push_back(call);
    if (rank < 3) {
      EXPECT_TRUE(observe(0.5).empty()) << "not all have made it";
    }
  }
  observe(0.5);
  moving.clear();
  expect_one(observe(1), Fault::mismatch, Ranks{1});
  EXPECT_EQ(observe(10).at(0).fault, Fault::mismatch) << "it holds";
}

/// The reduction was made between two observations, and the ring no longer holds it.
TEST_F(Detection, AReductionThatDifferedIsFoundLater) {
  moving = {0, 1, 2, 3};
  observe(1);
  for (RankSnapshot& rank : job.ranks) {
    rank.communicators[0].collectives = 5000;
    rank.communicators[0].reductions = rank.world_rank == 2 ? 77 : 12;
  }
  const Finding found = expect_one(observe(0.5), Fault::mismatch, Ranks{2});
  EXPECT_EQ(found.confidence, 1);
  ASSERT_TRUE(found.mismatch);
  EXPECT_EQ(found.mismatch->first, 1u);
  EXPECT_EQ(found.mismatch->ordinal, 5000u);
}

/// If ranks are in different calls, these are reported.
TEST_F(Detection, ACallThatIsLeftOutIsNoPastReduction) {
  job.collective(0, "MPI_Barrier");
  for (const int rank : {1, 2, 3}) {
    job.collective(rank, "MPI_Allreduce");
    job.ranks[static_cast<std::size_t>(rank)].communicators[0].reductions = 5;
  }
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{0});
  ASSERT_TRUE(found.mismatch);
  EXPECT_EQ(found.mismatch->first, 0u);
}

TEST_F(Detection, AnotherOperationOrKindOfNumbers) {
  moving = {0, 1, 2, 3};
  std::uint32_t ordinal = 0;
  const auto reduce = [&](std::uint16_t usual, std::uint16_t of_rank_2) {
    ++ordinal;
    for (int rank = 0; rank < 4; ++rank) {
      CallSnapshot call;
      call.number = thread(rank).finished.size();
      call.function = number_of("MPI_Allreduce");
      call.communicator = 0;
      call.ordinal = ordinal;
      call.operation = rank == 2 ? of_rank_2 : usual;
      thread(rank).finished.push_back(call);
    }
    return observe(1);
  };
  constexpr std::uint16_t sum = reduction_code(ReductionOp::sum, BasicType::integer);
  EXPECT_TRUE(reduce(sum, sum).empty());
  EXPECT_TRUE(reduce(sum, reduction_code(ReductionOp::sum, BasicType::unknown)).empty()) << "a derived type";
  EXPECT_TRUE(reduce(sum, 0).empty());
  const auto found = reduce(sum, reduction_code(ReductionOp::sum, BasicType::floating));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprits, Ranks{2});
  EXPECT_EQ(variant_text(found[0].mismatch->variants[1]), "MPI_Allreduce MPI_SUM of floating-point numbers");
}

TEST_F(Detection, ACallThatWasRefusedAndMadeAgain) {
  moving = {0, 1, 2, 3};
  for (int rank = 0; rank < 4; ++rank)
    for (const char* function : {"MPI_Bcast", "MPI_Allreduce"}) {  // the first one had an invalid argument
      if (rank > 1 && std::string(function) == "MPI_Bcast") continue;
      CallSnapshot call;
      call.number = thread(rank).finished.size();
      call.function = number_of(function);
      call.communicator = 0;
      call.ordinal = 3;
      thread(rank).finished.push_back(call);
    }
  EXPECT_TRUE(observe(2).empty());
}

/// With more threads than processors a thread may be in its receive for seconds though the message is there.
TEST_F(Detection, AThreadThatHasToWaitForAnotherOneIsNoDeadlock) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  job.call(2, "MPI_Recv", 3);
  ThreadSnapshot listener = thread(2);
  listener.slot = 1;
  listener.tid = 900;
  listener.current->peer = 2;
  job.ranks[2].threads.push_back(listener);
  job.ranks[3].peers.push_back({no_index, 2, 5, 40, 0, 0});
  job.ranks[2].peers.push_back({no_index, 3, 0, 0, 4, 32});
  EXPECT_TRUE(observe(9).empty());
  job.ranks[2].threads.pop_back();
  leave_mpi(2);
  job.call(2, "MPI_Recv", 3);
  EXPECT_FALSE(observe(2).empty()) << "the only thread";
}

TEST_F(Detection, AMessageWithAnotherTag) {
  job.collective(0, "MPI_Barrier");
  job.collective(1, "MPI_Barrier");
  job.collective(3, "MPI_Barrier");
  job.call(2, "MPI_Recv", 3).tag = 4;
  finished(3, "MPI_Send", 2, 9);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{3});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 9);
  EXPECT_EQ(found.tags->wanted, 4);
}

TEST_F(Detection, AMessageWithAnotherTagWhileAnotherRankHangs) {
  for (const int rank : {0, 3}) job.collective(rank, "MPI_Barrier");  // rank 1 computes
  job.call(2, "MPI_Recv", 3).tag = 4;
  finished(3, "MPI_Send", 2, 9);
  const auto found = observe(6);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::unmatched_message);
  EXPECT_EQ(found[0].culprits, Ranks{3});
  ASSERT_TRUE(found[0].tags);
  EXPECT_EQ(found[0].tags->wanted, 4);
  EXPECT_EQ(found[1].fault, Fault::computation_hang);
  EXPECT_EQ(found[1].culprits, Ranks{1});
}

TEST_F(Detection, AnotherTagOfARankThatMayYetSendIsNoFaultOfItsOwn) {
  for (const int rank : {0, 1}) job.collective(rank, "MPI_Barrier");
  job.call(2, "MPI_Recv", 3).tag = 4;  // rank 3 computes
  finished(3, "MPI_Send", 2, 9);
  expect_one(observe(6), Fault::computation_hang, Ranks{3});
}

TEST_F(Detection, ADeadlockBesideAStoppedRank) {
  job.call(0, "MPI_Ssend", 1).tag = 4;
  job.call(1, "MPI_Ssend", 0).tag = 4;
  thread(3).state = 'T';
  const auto found = observe(4);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::stopped);
  EXPECT_EQ(found[1].fault, Fault::deadlock);
  EXPECT_EQ(found[1].culprits, (Ranks{0, 1}));
}

/// According to the message numbers the receive may be complete, but no rank proceeds.
TEST_F(Detection, AMessageWithAnotherTagForARequestThatMayBeComplete) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  job.request(2, "MPI_Irecv", 3).tag = 4;
  job.request(2, "MPI_Irecv", 1).tag = 4;
  job.call(2, "MPI_Waitall");
  thread(2).calls = 1000;  // it does not remember which receives it has posted before
  for (const std::uint32_t from : {1u, 3u}) {
    job.ranks[2].peers.push_back({no_index, from, 0, 0, 1, 8});
    job.ranks[from].peers.push_back({no_index, 2, 1, 8, 0, 0});
    finished(static_cast<int>(from), "MPI_Send", 2, from == 3 ? 9 : 4);
  }
  EXPECT_TRUE(observe(3).empty());
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{3});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 9);
}

TEST_F(Detection, OtherTagsThatWereReceivedAreNoMismatch) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  job.call(2, "MPI_Recv", 3).tag = 4;
  finished(3, "MPI_Send", 2, 9);
  finished(2, "MPI_Irecv", 3, 9);
  const auto found = observe(2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprits, Ranks{3});
  EXPECT_FALSE(found[0].tags);
}

/// The workers have got their next tasks, of which only rank 2 has not sent one's result.
TEST_F(Detection, TheWorkerThatHasNotAnsweredATask) {
  job.call(0, "MPI_Recv", any_rank);
  const std::uint64_t tasks[] = {0, 7, 5, 9}, results[] = {0, 6, 3, 8};
  for (const int rank : {1, 2, 3}) {
    job.call(rank, "MPI_Recv", 0);
    job.ranks[static_cast<std::size_t>(rank)].peers.push_back({no_index, 0, results[rank], 0, tasks[rank], 0});
  }
  expect_one(observe(2), Fault::unmatched_message, Ranks{2});
}

TEST_F(Detection, AWorkerThatDoesNotSendItsResult) {
  job.call(0, "MPI_Recv", any_rank);
  job.communicator(7, {0, 1, 2, 3});
  job.call(3, "MPI_Recv", 0);
  for (const int rank : {1, 2}) job.collective(rank, "MPI_Barrier", no_rank, 1);
  const auto found = observe(2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprits, Ranks{3}) << "the others have gone on";
}

class DetectionOfTwo : public Detection {
 protected:
  DetectionOfTwo() : Detection(2) {}
};

/// Rank 0 has left out the barrier, and looks for messages of the only other rank until it ends.
TEST_F(DetectionOfTwo, ABarrierThatARankWhichProbesHasLeftOut) {
  job.collective(1, "MPI_Barrier");
  thread(0).polling = thread(0).polled_known = thread(0).polls_one = true;
  thread(0).poll_function = number_of("MPI_Iprobe");
  thread(0).probes.push_back({number_of("MPI_Iprobe"), 0, any_rank, 7});
  const Finding found = expect_one(observe(6), Fault::unmatched_message, Ranks{0});
  EXPECT_TRUE(found.alone);
}

/// As a master which waits for the result of its only worker.
TEST_F(DetectionOfTwo, AMessageThatARankInABarrierHasLeftOut) {
  job.collective(1, "MPI_Barrier");
  job.call(0, "MPI_Recv", any_rank);
  expect_one(observe(6), Fault::unmatched_message, Ranks{1});
}

TEST_F(Detection, AnErrorInACallWithAnotherCount) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) job.collective(rank, "MPI_Allreduce").bytes = rank == 2 ? 4 : 8;
  job.kill(0);
  const auto found = observe(0.25);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::mismatch);
  EXPECT_EQ(found[0].culprits, Ranks{2});
  EXPECT_EQ(found[1].fault, Fault::crash);
}

TEST_F(Detection, AMessageThatIsNotReceived) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  job.call(2, "MPI_Ssend", 3);
  expect_one(observe(2), Fault::unmatched_message, Ranks{3});
}

TEST_F(Detection, AMessageThatIsNotReceivedWhileOthersWaitInARing) {
  job.call(0, "MPI_Recv", 3);
  job.call(3, "MPI_Recv", 2);
  job.call(2, "MPI_Ssend", 0);
  job.collective(1, "MPI_Barrier");
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{0});
  EXPECT_EQ(found.cycle.size(), 3u);
}

/// The receive in the cycle is that of an MPI_Sendrecv.
TEST_F(Detection, AMessageThatIsNotReceivedWhileItsReceiverWaitsForTheSender) {
  job.request(1, "MPI_Issend", 2);
  job.call(1, "MPI_Waitall");
  CallSnapshot& exchange = job.call(2, "MPI_Sendrecv", 0);
  exchange.tag = exchange.second_tag = 1;
  exchange.second_peer = 1;
  for (const int rank : {0, 3}) job.collective(rank, "MPI_Allreduce");
  expect_one(observe(2), Fault::unmatched_message, Ranks{2});
}

/// Each rank of the cycle sends in its MPI_Sendrecv, too, but to others.
TEST_F(Detection, ACycleOfMpiSendrecvIsADeadlock) {
  for (const int rank : {0, 1, 2}) {
    CallSnapshot& exchange = job.call(rank, "MPI_Sendrecv", null_rank);
    exchange.second_tag = 1;
    exchange.second_peer = (rank + 1) % 3;
  }
  job.collective(3, "MPI_Allreduce");
  expect_one(observe(2), Fault::deadlock, Ranks{0, 1, 2});
}

TEST_F(Detection, ARankThatLeftForFinalize) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  job.call(3, "MPI_Finalize");
  job.ranks[3].state = ProcessState::finalizing;
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{3});
  EXPECT_EQ(found.cause, Cause::finalized);
}

TEST_F(Detection, ARankThatLeftForFinalizeBesideAStoppedOne) {
  for (const int rank : {0, 1}) job.collective(rank, "MPI_Allreduce");
  thread(2).state = 'T';
  job.call(3, "MPI_Finalize");
  job.ranks[3].state = ProcessState::finalizing;
  const auto found = observe(2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::stopped);
  EXPECT_EQ(found[1].cause, Cause::finalized);
  EXPECT_EQ(found[1].culprits, Ranks{3});
}

/// Rank 0 has sent rank 1 a short message, which has gone on, and waits for rank 3.
TEST_F(Detection, AShortSendThatIsCompleteIsNoDeadlock) {
  CallSnapshot& call = job.call(0, "MPI_Sendrecv", 1);
  call.second_peer = 3;
  call.bytes = 4096;
  job.communicator(7, {0, 1, 2, 3});
  for (const int rank : {1, 2}) job.collective(rank, "MPI_Allreduce", no_rank, 1);
  EXPECT_TRUE(observe(3).empty());
  expect_one(observe(2), Fault::computation_hang, Ranks{3});
}

TEST_F(Detection, SendsThatMayBeCompleteAndYetNobodyGoesOn) {
  for (int rank = 0; rank < 4; ++rank) job.request(rank, "MPI_Isend", (rank + 1) % 4).bytes = 4096;
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Waitall");
  EXPECT_TRUE(observe(9).empty());
  const Finding found = observe(2).at(0);
  EXPECT_EQ(found.fault, Fault::deadlock);
  EXPECT_EQ(found.confidence, 0.6);
}

TEST_F(Detection, LongSendsInACycleAreADeadlock) {
  for (int rank = 0; rank < 4; ++rank) job.request(rank, "MPI_Isend", (rank + 1) % 4).bytes = 1 << 20;
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Waitall");
  EXPECT_EQ(observe(2).at(0).fault, Fault::deadlock);
}

/// It has left out no message for another rank.
TEST_F(Detection, ASendToItself) {
  for (const int rank : {0, 2, 3}) job.collective(rank, "MPI_Barrier");
  job.call(1, "MPI_Ssend", 1);
  EXPECT_EQ(expect_one(observe(2), Fault::deadlock, Ranks{1}).cycle, Ranks{1});
  job.call(1, "MPI_Send", 1).bytes = 1 << 20;
  expect_one(observe(2), Fault::deadlock, Ranks{1});
  job.call(1, "MPI_Recv", 1);
  expect_one(observe(2), Fault::deadlock, Ranks{1});
}

}  // namespace
