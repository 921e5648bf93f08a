// SPDX-License-Identifier: Apache-2.0
// Ranks that have ended, that are stopped from outside, or whose host does not answer.
#include "telemetry/detector/detection_fixture.hpp"
#include "telemetry/record/reduction.hpp"
#include "telemetry/waits/sample_window.hpp"

using namespace bestride;

namespace {

TEST_F(Detection, AKilledRankAtOnce) {
  observe(1);
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  job.kill(2);
  job.ranks[2].wait_status = 11;
  const Finding found = expect_one(observe(0.25), Fault::crash, Ranks{2});
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 3}));
}

TEST_F(Detection, AHostThatDoesNotAnswerWhileOthersWaitForItsRanks) {
  observe(1);
  for (const int rank : {0, 1}) job.collective(rank, "MPI_Allreduce");
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 4;
  EXPECT_TRUE(observe(8).empty()) << "not long enough, and what ranks 2 and 3 do is not known";
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 6;
  const Finding found = expect_one(observe(0.5), Fault::unreachable, Ranks{2, 3});
  EXPECT_EQ(found.held_up, (Ranks{0, 1}));
}

TEST_F(Detection, AHostThatDoesNotAnswerAndIsNotWaitedFor) {
  observe(1);
  job.ranks[3].unheard = 60;
  moving = {0, 1, 2};
  EXPECT_TRUE(observe(60).empty());
}

TEST_F(Detection, OfRanksThatEndTogetherTheOneThatWasNotKilledByTheLauncher) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].wait_status = rank == 1 ? 6 : 9;
  }
  auto found = observe(0.25);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprits, Ranks{1});
  found = observe(5);
  ASSERT_EQ(found.size(), 1u) << "a crash holds";
}

/// Rank 0, which was outside MPI, ends while the observer looks.
TEST_F(Detection, ARankWhoseEndIsNotNotedYetDidNotEndFirst) {
  observe(1);
  for (const int rank : {1, 2, 3}) job.collective(rank, "MPI_Bcast", 0);
  const auto end = [this](int rank, double when) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ended = when;
    each.ended_in_order = true;
    each.wait_status = 9;
  };
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    if (rank > 0) end(rank, 101 + (rank == 1 ? 0 : 0.001 * rank));
  }
  EXPECT_TRUE(observe(0.25).empty());
  end(0, 101.004);
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{1}).confidence, 1);
}

/// As some launchers do when a rank ends by _exit() after MPI_Finalize.
TEST_F(Detection, ARankThatIsKilledWhenOthersHaveEndedWellMayBeTheLaunchersVictim) {
  observe(1);
  for (RankSnapshot& each : job.ranks) {
    each.state = each.world_rank == 2 ? ProcessState::finalizing : ProcessState::finalized;
    each.alive = false;
    each.wait_status = each.world_rank == 2 ? 9 : 0;
  }
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{2}).confidence, 0.6);
}

TEST_F(Detection, ARankThatEndsItselfLongAfterTheFirstEndIsNotToBlame) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].ended = rank == 2 ? 101 : 101.5;
    job.ranks[static_cast<std::size_t>(rank)].wait_status = rank == 2 ? 9 : 1 << 8;  // they handle SIGTERM
  }
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, OfRanksThatEndThemselvesTheFirst) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].ended = 101 + 0.001 * (4 - rank);
    job.ranks[static_cast<std::size_t>(rank)].wait_status = rank == 3 ? 9 : rank == 2 ? 11 : 1 << 8;
  }
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

/// Ranks 0, 1 and 3 end before rank 2, whose MPI error made the launcher end them.
TEST_F(Detection, AnMpiErrorThatARankHasNotedIsNotOverriddenByTheOrderOfEnds) {
  observe(1);
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ended_in_order = true;
    each.ended = 101 + 1e-3 * (rank == 2 ? 9 : rank);
    each.wait_status = 9;
  }
  note(2, EndKind::mpi_error, 0.3);
  const Finding found = expect_one(observe(0.25), Fault::crash, Ranks{2});
  EXPECT_EQ(found.cause, Cause::mpi_error);
  EXPECT_EQ(found.confidence, 1);
}

/// Ranks 0 and 1 lose their connections to rank 2, and the launcher ends rank 3.
class LostConnections : public Detection {
 protected:
  void end(double rank_2_ended, int its_wait_status) {
    observe(1);
    for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
    for (int rank = 0; rank < 4; ++rank) {
      job.kill(rank);
      RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
      each.remote = true;
      each.ended = rank == 2 ? rank_2_ended : 101.2;
      each.wait_status = rank == 3 ? 9 : 15 << 8;
      if (rank < 2) note(rank, EndKind::mpi_error, 0.1);
    }
    job.ranks[2].wait_status = its_wait_status;
  }
};

TEST_F(LostConnections, TheRankThatCrashedIsToBlame) {
  end(101.15, 11);
  const Finding found = expect_one(observe(0.25), Fault::crash, Ranks{2});
  EXPECT_EQ(found.cause, Cause::killed);
}

TEST_F(LostConnections, TheRankThatEndedLongBeforeIsToBlame) {
  end(100.4, -1);
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(LostConnections, TheErrorIsTheCauseIfTheOtherEndFollowedIt) {
  end(101.3, -1);
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{0, 1}).cause, Cause::mpi_error);
}

/// It is to blame although the launcher's victims are seen to end before it.
TEST_F(Detection, ACrashThatARankHasNoted) {
  observe(1);
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ended = 101 + 1e-3 * (rank == 2 ? 9 : rank);
    each.wait_status = -1;
  }
  note(2, EndKind::signal, 0.3);
  const Finding found = expect_one(observe(0.25), Fault::crash, Ranks{2});
  EXPECT_EQ(found.cause, Cause::killed);
  EXPECT_EQ(found.confidence, 1);
}

TEST_F(Detection, ACrashAfterFinalize) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalized;
  }
  note(2, EndKind::signal, 0.1);
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

/// MPI libraries end a rank that calls them after MPI_Finalize.
TEST_F(Detection, ACallAfterFinalize) {
  observe(1);
  job.call(2, "MPI_Bcast");
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.state = ProcessState::finalized;
    each.wait_status = rank == 2 ? 1 << 8 : 0;
    each.ended = 101 + 1e-3 * rank;
  }
  note(2, EndKind::exit, 0.1);
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

/// The destructor of a static object may call MPI_Finalize.
TEST_F(Detection, FinalizeAfterExit) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalized;
    job.ranks[static_cast<std::size_t>(rank)].wait_status = 0;
    note(rank, EndKind::exit, 0.1);
  }
  EXPECT_TRUE(observe(0.25).empty());
}

/// An error handler has returned an error to the program, or will.
TEST_F(Detection, AnMpiErrorOfAJobThatGoesOnIsNoFault) {
  observe(1);
  note(2, EndKind::mpi_error, 0.3);
  EXPECT_TRUE(observe(0.25).empty());
}

/// mpi4py raises an exception for the error that follows from another kind of numbers.
TEST_F(Detection, AnExceptionThatAWrongReductionLedTo) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    finished(rank, "MPI_Reduce", 0, no_tag);
    CallSnapshot& call = thread(rank).finished.back();
    call.ordinal = 1;
    call.operation = reduction_code(ReductionOp::sum, rank == 2 ? BasicType::integer : BasicType::floating);
  }
  note(0, EndKind::exception, 0.1);
  job.ranks[0].state = ProcessState::finalizing;
  const std::vector<Finding> found = observe(0.25);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::mismatch);
  EXPECT_EQ(found[0].culprits, Ranks{2});
  EXPECT_EQ(found[1].fault, Fault::crash);
  EXPECT_EQ(found[1].culprits, Ranks{0});
}

/// In mpi4py's atexit function, while the others are in an allreduce of another amount.
class AnExceptionInPython : public Detection {
 protected:
  void raise(int number, const char* text, std::uint64_t bytes) {
    observe(1);
    for (int rank = 0; rank < 4; ++rank) job.collective(rank, "MPI_Allreduce").bytes = rank == number ? bytes : 1000;
    note(number, EndKind::exception, 0.1);
    job.ranks[static_cast<std::size_t>(number)].end->text = text;
    thread(number).finished.push_back(*thread(number).current);
    job.collective(number, "MPI_Comm_free").entered = job.ranks[static_cast<std::size_t>(number)].end->at + 1000;
    job.ranks[static_cast<std::size_t>(number)].state = ProcessState::finalizing;
  }
};

TEST_F(AnExceptionInPython, AfterAnAmountThatDiffers) {
  raise(2, "mpi4py.MPI.Exception: Message truncated\n", 900);
  const std::vector<Finding> found = observe(0.25);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::mismatch);
  EXPECT_EQ(found[0].culprits, Ranks{2});
  EXPECT_EQ(found[1].cause, Cause::exception);
}

TEST_F(AnExceptionInPython, WhatFollowsIsNoWrongCall) {
  raise(2, "ValueError: 7\n", 1000);
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Bcast");
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{2}).cause, Cause::exception);
}

/// All ranks have left the call; those that got what they expected have begun the next one.
TEST_F(Detection, AmountsThatAnErrorWasReportedFor) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.collective(rank, "MPI_Alltoallv");
    amounts(job, rank, {8, 8, 8, 8}, {8, 8, 8, rank == 1 ? 4u : 8u});
    thread(rank).finished.push_back(*thread(rank).current);
    if (rank == 1)
      leave_mpi(rank);
    else
      job.collective(rank, "MPI_Alltoallv");
  }
  note(1, EndKind::exception, 0.1);
  job.ranks[1].state = ProcessState::finalizing;
  Detector other;
  for (const double now : {0.0, 0.25})
    EXPECT_EQ(expect_one(other.observe({now, job.ranks}), Fault::crash, Ranks{1}).cause, Cause::exception);
  job.ranks[1].end->text = "mpi4py.MPI.Exception: Message truncated\n";
  const std::vector<Finding> found = observe(0.25);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fault, Fault::mismatch);
  ASSERT_EQ(found[0].mismatch->pairs.size(), 1u);
  EXPECT_EQ(found[0].mismatch->pairs[0].from, 3);
  EXPECT_EQ(found[0].mismatch->pairs[0].to, 1);
}

TEST_F(Detection, ARankThatWaitedIsNotToBlameThoughItEndedFirst) {
  observe(1);
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  for (const int rank : {1, 0, 2, 3}) job.kill(rank);
  job.ranks[1].ended = 100.9;
  for (const int rank : {0, 2, 3}) job.ranks[static_cast<std::size_t>(rank)].ended = 100.901 + 1e-6 * rank;
  const Finding found = expect_one(observe(0.25), Fault::crash, Ranks{2});
  EXPECT_EQ(found.confidence, 0.6);
}

/// Rank 2 computes while the others wait; then ranks 1, 0 and 2 close their records in this order and end.
class OrderedEnds : public Detection {
 protected:
  void end(bool order_of_rank_2_is_known) {
    observe(1);
    for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
    for (const int rank : {1, 0, 2}) {
      job.kill(rank);
      RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
      each.ended_in_order = rank != 2 || order_of_rank_2_is_known;
      each.ended = rank == 1 ? 100.9 : 100.901 + 1e-6 * rank;
    }
  }
};

/// No launcher can have ended rank 1 because of rank 2.
TEST_F(OrderedEnds, TheFirstIsCertain) {
  end(true);
  job.ranks[1].wait_status = 9;
  job.ranks[2].wait_status = 1 << 8;
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{1}).confidence, 1);
}

TEST_F(OrderedEnds, TheFirstIsNotCertainIfTheOrderOfOneRankIsUnknown) {
  end(false);
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, OfRanksOnTwoHostsTheOneThatDidNotWait) {
  wait_for_rank_2_on_another_host();
  job.kill(0);  // by the launcher; that rank 2 has ended is not known yet
  job.ranks[0].ended = 100.9;
  EXPECT_TRUE(observe(0.25).empty());
  job.kill(2);
  job.ranks[2].ended = 101;
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, ARankWhoseEndWasNotNotedYetIsToBlameIfOthersWaitedForIt) {
  observe(1);
  for (const int rank : {1, 2, 3}) job.collective(rank, "MPI_Allreduce");
  for (const int rank : {0, 2}) job.ranks[static_cast<std::size_t>(rank)].alive = false;
  job.ranks[2].ended = 101;  // the launcher has ended it, and rank 0 is being taken down
  EXPECT_TRUE(observe(0.25).empty()) << "the next observation may tell when it ended";
  expect_one(observe(0.5), Fault::crash, {0});
}

TEST_F(Detection, ARankThatWaitsIsSaidToHaveCrashedWhenNoOtherOneEnds) {
  observe(1);
  for (const int rank : {1, 2, 3}) job.collective(rank, "MPI_Allreduce");
  job.ranks[2].alive = false;
  job.ranks[2].ended = 101;
  EXPECT_TRUE(observe(0.25).empty()) << "another one may be being taken down";
  EXPECT_TRUE(detector.suspects());
  expect_one(observe(0.5), Fault::crash, {2});
}

TEST_F(Detection, ARankThatIsStillTakenDownWhileTheLauncherHasKilledOthers) {
  observe(1);
  for (const int rank : {1, 3}) job.collective(rank, "MPI_Allreduce");
  job.kill(0);  // by the launcher, while it computed
  job.ranks[0].ended = 101;
  job.ranks[0].wait_status = 9;
  EXPECT_TRUE(observe(0.25).empty());
  EXPECT_TRUE(detector.suspects());
  job.kill(2);
  job.ranks[2].ended = 101.01;
  job.ranks[2].wait_status = 11;
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, ARankThatIsKilledWhileOthersCompute) {
  observe(1);
  job.kill(0);
  job.ranks[0].wait_status = 9;
  EXPECT_TRUE(observe(0.25).empty());
  expect_one(observe(0.25), Fault::crash, Ranks{0});
}

TEST_F(Detection, ARankThatIsKilledWhileItWaitsForAnotherHost) {
  wait_for_rank_2_on_another_host();
  job.kill(0);
  EXPECT_TRUE(observe(0.5).empty());
  expect_one(observe(0.25), Fault::crash, Ranks{0});
}

TEST_F(Detection, ARankThatIsKilledWhileItWaitsForAProcessThatHasNotToldItsRank) {
  wait_for_rank_2_on_another_host();
  job.ranks[2].world_rank = -1;
  job.kill(0);
  job.ranks[0].ended = 100.9;
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(observe(0.1).empty());
  job.ranks[2].world_rank = 2;
  job.kill(2);
  job.ranks[2].ended = 101;
  expect_one(observe(0.1), Fault::crash, Ranks{2});
}

TEST_F(Detection, ARankThatIsKilledWhileAProcessNeverTellsItsRank) {
  wait_for_rank_2_on_another_host();
  job.ranks[2].world_rank = -1;
  job.kill(0);
  std::vector<Finding> found;
  for (int i = 0; i < 12 && found.empty(); ++i) found = observe(0.1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprits, Ranks{0});
  EXPECT_LT(found[0].confidence, 0.8);
}

TEST_F(Detection, ARankThatIsKilledWhileTheNewsOfAnotherHostAreOld) {
  wait_for_rank_2_on_another_host();
  leave_mpi(0);
  observe(0.25);
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 0.5;
  job.kill(0);  // by the launcher, while it computed
  job.ranks[0].ended = 101.52;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(observe(0.25).empty()) << "rank 2 may have ended before";
  EXPECT_TRUE(detector.suspects());
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 0;
  job.kill(2);
  job.ranks[2].ended = 101.5;
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, ARankThatIsKilledLongAfterTheLastNewsOfAnotherHost) {
  wait_for_rank_2_on_another_host();
  leave_mpi(0);
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 6;
  job.kill(0);
  expect_one(observe(0.25), Fault::crash, Ranks{0});
}

TEST_F(Detection, TheLastObservationIsNotPutOff) {
  wait_for_rank_2_on_another_host();
  for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].unheard = 1;
  job.kill(0);
  EXPECT_TRUE(observe(0.25).empty());
  const Finding found = expect_one(detector.observe({200, job.ranks, true}), Fault::crash, Ranks{0});
  EXPECT_LT(found.confidence, 0.8);
}

TEST_F(Detection, TheRankWhoseEndWasSeenFirst) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].ended = rank == 3 ? 101.1 : 101.2;
  }
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{3}).confidence, 1);
}

TEST_F(Detection, ARankThatEndedALittleEarlierThanOthersIsNotCertain) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].ended = rank == 3 ? 101.1 : 101.12;
  }
  EXPECT_LT(expect_one(observe(0.25), Fault::crash, Ranks{3}).confidence, 0.8);
}

TEST_F(Detection, OfRanksThatEndTogetherTheOneThatMadeNoCallForLongest) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ticks_per_second = 1000;
    each.read_at = 5000;
    thread(rank).last_left = rank == 2 ? 4900 : 4950;
  }
  job.collective(1, "MPI_Allreduce");  // it waited, so it did not crash by itself
  const auto found = observe(0.25);
  EXPECT_EQ(found.at(0).culprits, Ranks{2});
  EXPECT_LT(found.at(0).confidence, 1);
}

TEST_F(Detection, OfRanksThatEndTogetherNotTheOneInACallThatAllHaveMade) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    job.collective(rank, "MPI_Allreduce");
    if (rank == 1) continue;
    leave_mpi(rank);
    if (rank != 2) job.collective(rank, "MPI_Barrier");
  }
  for (int rank = 0; rank < 4; ++rank) {
    job.kill(rank);
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ended = 101 + 0.001 * rank;
    each.ticks_per_second = 1000;
    each.read_at = 5000;
    thread(rank).last_left = rank == 1 ? 4800 : 4900;
  }
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

TEST_F(Detection, TheRankThatCalledAbort) {
  observe(1);
  job.call(1, "MPI_Abort");
  for (const int rank : {0, 3}) job.kill(rank);  // the launcher does not end all of them at once
  const auto found = observe(0.25);
  EXPECT_EQ(found.at(0).culprits, Ranks{1});
  EXPECT_EQ(found.at(0).cause, Cause::aborted);
}

/// Some versions of MPICH return from MPI_Abort, before the launcher ends the ranks.
TEST_F(Detection, TheRankWhoseAbortHasReturned) {
  observe(1);
  finished(2, "MPI_Abort", no_rank, no_tag);
  for (int rank = 0; rank < 4; ++rank) {
    job.collective(rank, "MPI_Barrier");
    job.kill(rank);
    job.ranks[static_cast<std::size_t>(rank)].wait_status = 9;
    job.ranks[static_cast<std::size_t>(rank)].ended = 101 + 0.001 * rank;
  }
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{2}).cause, Cause::aborted);
}

/// It has not called exit(), and the others end after it.
TEST_F(Detection, ARankThatIsKilledAfterFinalize) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.state = rank == 1 ? ProcessState::finalized : ProcessState::finalizing;
    each.ended = rank == 1 ? 101 : 101.01;
    job.kill(rank);
  }
  EXPECT_LT(expect_one(observe(0.25), Fault::crash, Ranks{1}).confidence, 0.7);
}

/// By a function that exit() calls after the one that notes the code: what the kernel has told counts.
TEST_F(Detection, ARankThatACallAfterFinalizeHasEnded) {
  observe(1);
  for (RankSnapshot& each : job.ranks) {
    each.state = ProcessState::finalized;
    each.wait_status = 0;
  }
  job.call(2, "MPI_Barrier");
  job.ranks[2].wait_status = 1 << 8;
  for (int rank = 0; rank < 4; ++rank) job.kill(rank);
  expect_one(observe(0.25), Fault::crash, Ranks{2});
}

/// The kernel has told how, and in which order they ended.
TEST_F(Detection, ARankThatIsKnownToBeKilledAfterFinalize) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.state = rank == 3 ? ProcessState::finalizing : ProcessState::finalized;
    each.ended = rank == 1 ? 101 : 101.01 + 0.001 * rank;
    each.ended_in_order = true;
    each.wait_status = rank == 2 ? 0 : 9;
    job.kill(rank);
  }
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{1}).confidence, 1);
}

TEST_F(Detection, ACrashAfterARankHasEndedWell) {
  observe(1);
  for (int rank = 0; rank < 4; ++rank) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.state = rank == 1 ? ProcessState::finalized : ProcessState::finalizing;
    each.wait_status = rank == 1 ? 0 : rank == 3 ? 11 : 9;
    each.ended = rank == 1 ? 101 : 101.01;
    job.kill(rank);
  }
  expect_one(observe(0.25), Fault::crash, Ranks{3});
}

TEST_F(Detection, AStoppedRankWithinTwoSeconds) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Allreduce");
  thread(3).state = 'T';
  EXPECT_TRUE(observe(0.75).empty());
  const Finding found = expect_one(observe(1.25), Fault::stopped, Ranks{3});
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 2}));
  thread(3).state = 'R';
  for (int rank = 0; rank < 4; ++rank) leave_mpi(rank);
  EXPECT_TRUE(observe(0.25).empty()) << "it was continued";
  EXPECT_EQ(detector.longest_wait(), 0) << "an interruption is no wait of the program";
}

TEST_F(Detection, ARankThatIsStoppedForAMomentAfterLongWork) {
  observe(3);
  thread(3).state = 'T';
  EXPECT_TRUE(observe(0.75).empty());
  thread(3).state = 'R';
  EXPECT_TRUE(observe(0.5).empty());
  thread(3).state = 'T';
  EXPECT_TRUE(observe(0.75).empty()) << "it is another stop";
}

TEST_F(Detection, ARankInADebugger) {
  thread(1).state = 't';
  EXPECT_EQ(observe(2).at(0).cause, Cause::traced);
}

}  // namespace
