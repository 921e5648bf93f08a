// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/finding_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/watch/advice.hpp"
#include "cli/watch/summary.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/waits/sample_job.hpp"
#include "telemetry/waits/sample_window.hpp"

namespace bestride::inline cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// In the program itself.
NamedFrame own(const std::string& function, int line, const std::string& file = "solver.c") {
  return {function, "solver", line ? file : "", line};
}
NamedFrame of_c(const std::string& function) { return {function, "libc.so.6", "", 0}; }

/// A job of four ranks, of which those from `first` on wait in MPI_Barrier and the others are outside MPI.
class FindingText : public testing::Test {
 protected:
  FindingText() {
    for (RankSnapshot& rank : sample.ranks) rank.pid = rank.threads[0].tid;
    finding.fault = Fault::computation_hang;
    finding.cause = Cause::blocked;
  }
  void barrier_from(int first) {
    for (int rank = first; rank < 4; ++rank) {
      sample.collective(rank, "MPI_Barrier");
      finding.held_up.push_back(rank);
    }
  }
  void stack(std::int32_t rank, std::vector<NamedFrame> frames, const std::string& thread = "") {
    host.stacks.push_back({rank, thread, false, std::move(frames)});
  }
  JobView view() {
    JobView result = begin_view({"job", sample.ranks, {}}, std::vector<Activity>(sample.ranks.size()));
    analyze(result);
    return result;
  }
  std::string summary_text() {
    const JobStacks stacks = merge_host_stacks({host});
    return summary(finding, view(), sites, &stacks);
  }
  std::string headline_text() {
    const JobStacks stacks = merge_host_stacks({host});
    return headline(finding, view(), &stacks);
  }
  void crash(std::int32_t rank, EndKind kind, const std::string& text = "") {
    finding.fault = Fault::crash;
    finding.culprits.push_back(rank);
    RankSnapshot& gone = sample.ranks[static_cast<std::size_t>(rank)];
    gone.alive = false;
    gone.end = EndSnapshot{kind, 0, SIGABRT, text};
  }

  telemetry::SampleJob sample{4};
  Finding finding;
  HostStacks host;
  CallSites sites;
};

/// The launcher ends the others by a signal that also the kernel uses, if there is no memory.
TEST_F(FindingText, RanksThatTheLauncherHasEnded) {
  crash(2, EndKind::signal);
  for (const int rank : {0, 1, 3}) {
    sample.kill(rank);
    sample.ranks[static_cast<std::size_t>(rank)].wait_status = SIGKILL;
  }
  finding.confidence = 1;
  const std::string text = finding_text(finding, view(), nullptr, 1, false);
  EXPECT_THAT(text, HasSubstr("ranks 0,1,3  ended by the launcher because of that, with signal 9 (Killed)"));
  finding.confidence = 0.6;
  EXPECT_THAT(finding_text(finding, view(), nullptr, 1, false), HasSubstr("killed by signal 9 (Killed)"));
}

TEST_F(FindingText, ARankThatIsKilledWhenAnotherHasEnded) {
  crash(2, EndKind::signal);
  sample.ranks[2].end.reset();
  sample.ranks[2].wait_status = SIGKILL;
  EXPECT_THAT(finding_text(finding, view(), nullptr, 1, false), HasSubstr("out-of-memory killer"));
  sample.kill(1);
  sample.ranks[1].state = ProcessState::finalized;
  sample.ranks[1].wait_status = 0;
  EXPECT_THAT(finding_text(finding, view(), nullptr, 1, false), HasSubstr("out-of-memory killer"));
  sample.ranks[2].state = ProcessState::finalizing;
  EXPECT_THAT(finding_text(finding, view(), nullptr, 1, false), HasSubstr("ends by _exit() (os._exit() of Python)"));
}

TEST_F(FindingText, ARankThatHoldsALock) {
  barrier_from(0);
  sample.leave(1);
  sample.ranks[1].wait.call = "flock of /tmp/log, which process 100 (solver) holds";
  sample.ranks[1].wait.holder = sample.ranks[0].pid;
  finding.fault = Fault::deadlock;
  finding.culprits = {0};
  finding.held_up = {1, 2, 3};
  finding.cycle = {0, 1};
  sample.ranks[1].threads[0].state = 'S';
  const std::string text = finding_text(finding, view(), nullptr, 1, false);
  EXPECT_THAT(text, HasSubstr("rank 0 waits in MPI and holds a lock, for which a rank waits that is needed there: "
                              "0 -> 1 -> 0"));
  EXPECT_THAT(text, HasSubstr("waits in flock of /tmp/log, which process 100 (solver) holds (S)  waits for rank 0"));
  sample.leave(0);
  finding.fault = Fault::computation_hang;
  finding.cause = Cause::computing;
  EXPECT_THAT(headline_text(), HasSubstr("rank 0 (pid 100 on ) does not release the lock that others wait for"));
}

TEST_F(FindingText, EachRankHasItsOwnLineOfOneFunction) {
  barrier_from(1);
  finding.culprits = {0};
  stack(0, {own("main", 46), own("simulation", 47), of_c("pause")});
  for (std::int32_t rank = 1; rank < 4; ++rank) stack(rank, {own("main", 46), own("simulation", 73)});
  EXPECT_EQ(summary_text(),
            "3 of 4 ranks wait in MPI_Barrier at simulation (solver.c:73). Rank 0 is in simulation (solver.c:47): look "
            "there.");
}

TEST_F(FindingText, LinesOfManyRanksAreTheirOwn) {
  sample = telemetry::SampleJob(12);
  for (std::int32_t rank = 0; rank < 12; ++rank) {
    stack(rank, {own("main", 46), own("simulation", 50 + rank)});
    if (rank > 0) sample.collective(rank, "MPI_Barrier");
  }
  finding.culprits = {0};
  EXPECT_EQ(summary_text(), "Rank 0 is in simulation (solver.c:50): look there.");
}

TEST_F(FindingText, EachCulpritHasItsPlace) {
  barrier_from(3);
  finding.culprits = {0, 1, 2};
  stack(0, {own("main", 46), own("load", 9, "io.c"), of_c("read")});
  stack(1, {own("main", 46), own("assemble", 212, "mesh.c")});
  stack(2, {own("main", 46), own("load", 9, "io.c"), of_c("read")});
  stack(3, {own("main", 50)});
  EXPECT_EQ(summary_text(),
            "Rank 3 waits in MPI_Barrier at main (solver.c:50). Ranks 0,2 are in load (io.c:9); rank 1 is in assemble "
            "(mesh.c:212): look there.");
}

TEST_F(FindingText, OtherThreadsDoNotCountForRanksThatLive) {
  finding.culprits = {0};
  stack(0, {own("worker", 12)}, "threads");
  host.failures.push_back({0, 1, 1, "can't be interrupted"});
  EXPECT_EQ(summary_text(), "");
  host.failures.clear();
  host.stacks.insert(host.stacks.begin(), {0, "", true, {of_c("poll")}});
  EXPECT_EQ(summary_text(), "") << "the main thread is not in the program";
  host.stacks.front().frames.insert(host.stacks.front().frames.begin(), own("main", 3));
  EXPECT_EQ(summary_text(), "Rank 0 is in main (solver.c:3): look there.");
}

TEST_F(FindingText, PlaceOfACrashIsTheProgramsOwn) {
  crash(1, EndKind::signal);
  stack(1, {own("main", 9),
            own("integrate", 31),
            {"std::map::at", "solver", "/usr/include/c++/12/bits/stl_map.h", 551},
            of_c("abort")});
  EXPECT_EQ(headline_text(), "rank 1 (pid 101 on ) was ended by signal 6 (Aborted) in integrate (solver.c:31)");
}

TEST_F(FindingText, AnAbortThatWasNotNotedMayBeInTheOutput) {
  crash(1, EndKind::exit);
  sample.ranks[1].end.reset();
  sample.ranks[1].wait_status = SIGABRT;
  EXPECT_THAT(advice(finding, view()), HasSubstr("output may say where"));
  sample.ranks[1].wait_status = SIGSEGV;
  EXPECT_THAT(advice(finding, view()), testing::Not(HasSubstr("output may say where")));
}

TEST_F(FindingText, PlaceOfACrashInAThread) {
  crash(1, EndKind::signal);
  stack(1, {own("main._omp_fn.0", 12), of_c("free")}, "threads");
  EXPECT_THAT(headline_text(), HasSubstr(" in main._omp_fn.0 (solver.c:12)"));
}

TEST_F(FindingText, PlaceOfACrashOfSeveralRanks) {
  crash(1, EndKind::signal);
  crash(2, EndKind::signal);
  stack(1, {own("main", 9), own("advect", 31)});
  stack(2, {own("main", 9), own("advect", 32)});
  EXPECT_THAT(headline_text(), HasSubstr(" in advect (solver.c)"));
  host.stacks.back().frames.back() = own("load", 32);
  EXPECT_THAT(headline_text(), testing::Not(HasSubstr(" in ")));
  host.stacks.clear();
  for (const std::int32_t rank : {1, 2}) stack(rank, {own("main", 0), own("advect", 0)});
  EXPECT_THAT(headline_text(), HasSubstr(" in advect")) << "without lines";
}

TEST_F(FindingText, AnInterpretersFrameIsNoPlace) {
  crash(1, EndKind::exit);
  RankSnapshot& rank = sample.ranks[1];
  rank.executable = "/usr/bin/python3.11";
  rank.wait_status = 1 << 8;
  rank.state = ProcessState::finalizing;
  stack(1, {{"Py_Exit", "libpython3.11.so.1.0", "Python/pylifecycle.c", 2944}, of_c("exit")});
  EXPECT_EQ(headline_text(), "rank 1 (pid 101 on ) ended with exit code 1 before MPI_Finalize");
  rank.threads[0].finished.emplace_back().function = telemetry::number_of("MPI_Finalize");
  EXPECT_EQ(headline_text(), "rank 1 (pid 101 on ) ended with exit code 1 after MPI_Finalize");
}

TEST_F(FindingText, CallsOfPythonProgramsAreAtTheirLine) {
  barrier_from(1);
  finding.culprits = {0};
  for (RankSnapshot& rank : sample.ranks) rank.executable = "/usr/bin/python3.11";
  for (std::int32_t rank = 0; rank < 4; ++rank)
    stack(rank, {{"main", "", "program.py", rank < 2 ? 7 : 9}, {"Comm.Barrier", "", "src/mpi4py/MPI.src/Comm.pyx", 8}});
  const JobStacks stacks = merge_host_stacks({host});
  const std::string text = finding_text(finding, view(), &stacks, 4, false);
  EXPECT_THAT(text, HasSubstr("  rank 1  pid 101  MPI_Barrier(MPI_COMM_WORLD #1)  at main (program.py:7)  waits for"));
  EXPECT_THAT(text, HasSubstr("  ranks 2,3  MPI_Barrier(MPI_COMM_WORLD #1)  at main (program.py:9)  waits for"));
  EXPECT_THAT(text, HasSubstr("wait in MPI_Barrier at main (program.py:9)"));
  for (RankSnapshot& rank : sample.ranks) rank.threads[0].tid += 10;
  EXPECT_THAT(finding_text(finding, view(), &stacks, 4, false), HasSubstr("wait in MPI_Barrier. "))
      << "another thread than the main one is in the call";
  EXPECT_THAT(finding_text(finding, view(), &stacks, 4, false), testing::Not(HasSubstr("at main (program.py:9)")));
}

TEST_F(FindingText, ExceptionInAPackageIsThatOfItsCaller) {
  crash(1, EndKind::exception,
        "ValueError: negative count -1\nmpi4py.MPI.message_simple (msgbuffer.pxi:183)\nmpi4py.MPI.Comm.Send "
        "(Comm.pyx:421)\nread_forcing (program.py:41)\nmain (program.py:56)\n");
  finding.cause = Cause::exception;
  EXPECT_THAT(headline_text(), HasSubstr(" in read_forcing (program.py:41): ValueError: negative count -1"));
  EXPECT_THAT(evidence(finding, view()),
              testing::ElementsAre("raised in mpi4py.MPI.message_simple (msgbuffer.pxi:183)",
                                   "called by read_forcing (program.py:41)", "called by main (program.py:56)"));
  sample.ranks[1].end->text = "ValueError: x\nmpi4py.MPI.Comm.Send (Comm.pyx:421)\n";
  EXPECT_THAT(headline_text(), HasSubstr(" in mpi4py.MPI.Comm.Send (Comm.pyx:421): "));
  sample.ranks[1].end->text = "ValueError: x\n";
  EXPECT_THAT(headline_text(), HasSubstr(" of Python: ValueError: x"));
}

TEST_F(FindingText, GroupsOfEpochsThatDiffer) {
  add_window(sample);
  finding.fault = Fault::mismatch;
  finding.culprits = {1};
  telemetry::finished(sample, 1, "MPI_Win_post", telemetry::no_rank);
  sample.call(0, "MPI_Win_start", telemetry::no_rank, telemetry::sample_window);
  finding.epoch = telemetry::EpochMismatch{0, 1, telemetry::number_of("MPI_Win_start"), "MPI_Win_post", 77, true};
  EXPECT_THAT(headline_text(), HasSubstr("rank 0 starts an access epoch to rank 1, which does not expose its window to "
                                         "rank 0"));
  EXPECT_THAT(summary_text(), HasSubstr("Rank 0 called MPI_Win_start; rank 1 called MPI_Win_post."));
  EXPECT_THAT(advice(finding, view()), HasSubstr("first of rank 1"));
  finding.epoch = telemetry::EpochMismatch{1, 0, telemetry::no_function, "MPI_Win_start", 77, true};
  EXPECT_THAT(headline_text(),
              HasSubstr("rank 1 exposes its window to rank 0, which starts no access epoch to rank 1"));
}

/// What to do next fits the calls of the cycle.
class DeadlockText : public FindingText {
 protected:
  DeadlockText() {
    finding.fault = Fault::deadlock;
    finding.cause = Cause::in_mpi;
  }
  /// The advice for a deadlock of these ranks, also as data.
  std::string next(const std::vector<std::int32_t>& cycle) {
    finding.cycle = finding.culprits = cycle;
    const std::vector<NextStep> steps = next_steps(finding, view());
    return advice(finding, view()) + " | " + (steps.empty() ? "" : steps[0].check + " | " + steps[0].otherwise);
  }
};

TEST_F(DeadlockText, OfMessages) {
  for (int rank = 0; rank < 4; ++rank) sample.call(rank, "MPI_Ssend", (rank + 1) % 4);
  EXPECT_THAT(next({0, 1, 2, 3}), HasSubstr("post receives before sends that wait for them"));
  for (int rank = 0; rank < 4; ++rank) sample.call(rank, "MPI_Recv", (rank + 1) % 4);
  EXPECT_THAT(next({0, 1, 2, 3}), HasSubstr("let one of the ranks send before it receives"));
}

TEST_F(DeadlockText, OfARankAndItself) {
  sample.call(1, "MPI_Ssend", 1);
  EXPECT_THAT(next({1}), HasSubstr("post the receive (MPI_Irecv) before this send"));
  EXPECT_EQ(headline_text(),
            "rank 1 sends a message to itself by MPI_Ssend, which waits until the message is received");
  sample.call(1, "MPI_Recv", 1);
  EXPECT_THAT(next({1}), HasSubstr("send the message (MPI_Isend) before this receive"));
  EXPECT_EQ(headline_text(), "rank 1 waits for a message from itself, which only it could send");
}

TEST_F(DeadlockText, OfCollectiveCalls) {
  sample.communicator(5, {0, 1});
  sample.collective(0, "MPI_Barrier");
  sample.collective(1, "MPI_Barrier", telemetry::no_rank, 1);
  EXPECT_THAT(next({0, 1}), HasSubstr("in one order on all ranks"));
  EXPECT_THAT(next({0, 1}), testing::Not(HasSubstr("receive")));
}

/// Of a window, for example, that a rank may have left out.
TEST_F(DeadlockText, OfACollectiveCallInWhichOnlyOneRankIsNot) {
  sample.communicator(5, {0, 1, 2, 3});
  for (const int rank : {0, 2, 3}) sample.collective(rank, "MPI_Win_fence", telemetry::no_rank, 1);
  sample.collective(1, "MPI_Barrier");
  next({0, 1});
  finding.culprits = {1};
  EXPECT_THAT(advice(finding, view()), HasSubstr("look whether rank 1 leaves out MPI_Win_fence"));
  EXPECT_THAT(advice(finding, view()), HasSubstr("in one order on all ranks"));
}

TEST_F(DeadlockText, OfEpochsOfAWindow) {
  add_window(sample);
  for (int rank = 0; rank < 4; ++rank) {
    telemetry::epoch(sample, rank, (rank + 1) % 4).starts = 1;
    sample.call(rank, "MPI_Win_start", telemetry::no_rank, telemetry::sample_window);
  }
  EXPECT_THAT(next({0, 1, 2, 3}), HasSubstr("MPI_Win_post before MPI_Win_start"));
  EXPECT_THAT(next({0, 1, 2, 3}), testing::Not(HasSubstr("receive")));
}

TEST_F(DeadlockText, OfDifferentCalls) {
  sample.call(0, "MPI_Recv", 1);
  sample.collective(1, "MPI_Barrier");
  EXPECT_THAT(next({0, 1}), HasSubstr("into one order"));
}

TEST_F(FindingText, AnExceptionsFilesHaveTheirFolders) {
  crash(1, EndKind::exception, "KeyError: 'dt'\nload (/home/me/solver/input.py:41)\nmain (run.py:5)\n");
  finding.cause = Cause::exception;
  EXPECT_THAT(headline_text(), HasSubstr(" in load (input.py:41): KeyError"));
  EXPECT_THAT(evidence(finding, view()),
              testing::ElementsAre("raised in load (/home/me/solver/input.py:41)", "called by main (run.py:5)"));
}

TEST_F(FindingText, TheLastLineOfAnErrorIsShown) {
  crash(1, EndKind::mpi_error, "Invalid rank, error stack:\na\nb\nc\nd\nInvalid rank has value 7");
  finding.cause = Cause::mpi_error;
  EXPECT_THAT(evidence(finding, view()), testing::ElementsAre("a", "b", "c", "Invalid rank has value 7"));
}

/// The MPI library does not say which of them it was.
TEST_F(FindingText, RequestsOfACallThatHasFailed) {
  const auto finished = [&](int rank, const char* function, std::int32_t peer, std::int32_t tag, std::uint64_t bytes) {
    CallSnapshot call;
    call.function = telemetry::number_of(function);
    call.communicator = 0;
    call.peer = peer;
    call.tag = tag;
    call.bytes = bytes;
    sample.ranks[static_cast<std::size_t>(rank)].threads[0].finished.push_back(call);
  };
  sample.call(1, "MPI_Waitall");
  for (const std::int32_t tag : {5, 6}) {
    RequestSnapshot& request = sample.request(1, "MPI_Irecv", 2);
    request.tag = tag;
    request.bytes = 80;
    finished(1, "MPI_Irecv", 2, tag, 80);
    finished(2, "MPI_Isend", 1, tag, tag == 6 ? 160 : 80);
  }
  crash(1, EndKind::mpi_error, "See the MPI_ERROR field\n");
  finding.cause = Cause::mpi_error;
  const auto lines = evidence(finding, view());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[0],
      "a request of this call: MPI_Irecv(MPI_COMM_WORLD, from 2 tag 6, 80 B); rank 2 has sent 160 B, which is longer");
  EXPECT_EQ(lines[1], "a request of this call: MPI_Irecv(MPI_COMM_WORLD, from 2 tag 5, 80 B)");
}

/// Before MPI_Init has returned, a rank has the number that the launcher gave it.
TEST_F(FindingText, AnErrorInInit) {
  finding.fault = Fault::crash;
  finding.cause = Cause::mpi_error;
  finding.culprits = {1};
  finding.held_up = {0, 2, 3};
  finding.confidence = 1;
  for (RankSnapshot& rank : sample.ranks) {
    rank.launch_rank = rank.world_rank;
    rank.launch_size = 4;
    rank.world_rank = -1;
    rank.world_size = 0;
    rank.state = ProcessState::starting;
    rank.host = "node1";
    rank.wait_status = SIGKILL;
  }
  for (const int rank : {0, 1, 2, 3}) {
    sample.call(rank, "MPI_Init").communicator = telemetry::no_index;
    sample.kill(rank);
  }
  sample.ranks[1].end =
      telemetry::EndSnapshot{telemetry::EndKind::mpi_error, 0, 15, "Other MPI error, error stack:\nx\n"};
  EXPECT_THAT(headline_text(), HasSubstr("rank 1 (pid"));
  EXPECT_THAT(headline_text(), HasSubstr("was ended by an MPI error in MPI_Init: Other MPI error"));
  EXPECT_THAT(summary_text(), HasSubstr("3 of 4 ranks were in MPI_Init"));
  EXPECT_THAT(advice(finding, view()), HasSubstr("can't start on node1"));
  EXPECT_THAT(finding_text(finding, view(), nullptr, 1, false), HasSubstr("ranks 0,2,3  ended by the launcher"));
}

/// One function with other arguments, or another function.
TEST_F(FindingText, CollectiveCallsThatDoNotMatch) {
  finding.fault = Fault::mismatch;
  finding.culprits = {3};
  finding.mismatch.emplace();
  finding.mismatch->communicator = 1;
  finding.mismatch->ordinal = 4;
  finding.mismatch->variants = {{telemetry::number_of("MPI_Bcast"), 0, 4096, 0, {0, 1, 2}},
                                {telemetry::number_of("MPI_Bcast"), 2, 4096, 0, {3}}};
  EXPECT_THAT(headline_text(), HasSubstr("passes other arguments than the others to MPI_Bcast #4 on MPI_COMM_WORLD: "
                                         "root 2, not 0"));
  EXPECT_THAT(advice(finding, view()), HasSubstr("compare the counts, types, operations and roots"));
  finding.mismatch->variants[1].root = 0;
  finding.mismatch->variants[1].bytes = 4097;
  EXPECT_THAT(headline_text(), HasSubstr("MPI_COMM_WORLD: 4097 B, not 4096 B"));
  finding.mismatch->variants[1].function = telemetry::number_of("MPI_Barrier");
  EXPECT_THAT(headline_text(), HasSubstr("makes another collective call than the others, as #4 on MPI_COMM_WORLD"));
  EXPECT_THAT(advice(finding, view()), HasSubstr("compare the conditions"));
}

TEST_F(FindingText, RanksThatHaveFinalizedAreNamedWithThoseThatWait) {
  finding.fault = Fault::mismatch;
  finding.culprits = {2};
  finding.mismatch.emplace();
  finding.mismatch->variants.resize(2);
  finding.mismatch->variants[0].function = telemetry::number_of("MPI_Barrier");
  finding.mismatch->variants[0].ranks = {0, 1, 3};
  finding.mismatch->variants[1].function = telemetry::number_of("MPI_Finalize");
  finding.mismatch->variants[1].ranks = {2};
  EXPECT_EQ(headline_text(), "rank 2 has called MPI_Finalize while ranks 0,1,3 are in MPI_Barrier on a communicator");
}

TEST_F(FindingText, WhatIsOverIsNamed) {
  crash(1, EndKind::exit);
  finding.fault = Fault::stopped;
  finding.cause = Cause::stopped;
  EXPECT_EQ(over_text(finding, view(), 4.2),
            "the job goes on: rank 1 (pid 101 on ) was stopped by a signal for 4.20 s");
  finding.fault = Fault::communication_hang;
  EXPECT_EQ(over_text(finding, view(), 12),
            "the job goes on: the communication hang of rank 1 (pid 101 on ), reported above, lasted 12.0 s");
}

TEST_F(FindingText, CallsWhosePartnersAreNotRecorded) {
  finding.fault = Fault::communication_hang;
  finding.culprits = {1};
  const auto advice_in = [&](const char* function) {
    sample.call(1, function);
    return advice(finding, view());
  };
  EXPECT_THAT(advice_in("MPI_Comm_create_group"), HasSubstr("compare the groups and the tag"));
  EXPECT_THAT(advice_in("MPI_Intercomm_create"), HasSubstr("compare the remote leader"));
  EXPECT_THAT(advice_in("MPI_Wait"), HasSubstr("MPI_Grequest_complete"));
  EXPECT_THAT(advice_in("MPI_Allreduce"), testing::StartsWith("look at the network"));
}

/// As of a process that ends while its stacks are taken.
TEST(HostStacksOfRanks, AStackWithoutFramesIsLeftOut) {
  HostStacks host;
  host.stacks.push_back({0, "", false, {}});
  host.stacks.push_back({1, "", false, {own("solve", 12)}});
  const JobStacks stacks = merge_host_stacks({host});
  EXPECT_EQ(stacks.places.count(0), 0u);
  EXPECT_EQ(stacks.places.at(1).line, 12);
  EXPECT_THAT(stacks.called_back, IsEmpty());
}

TEST(HostStacksOfRanks, OneThatHasEndedIsNoFailure) {
  if (!stacks_available()) GTEST_SKIP() << "no libdw in this build";
  telemetry::SampleJob sample(2);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  sample.ranks[0].pid = child;
  sample.ranks[1].pid = getpid();
  for (RankSnapshot& rank : sample.ranks) rank.visible = true;
  for (int round = 0; round < 2; ++round) {  // a zombie, then none
    const HostStacks taken = take_host_stacks(sample.ranks, false);
    ASSERT_EQ(taken.failures.size(), 1u);
    EXPECT_EQ(taken.failures[0].rank, 1) << "a process can't trace itself";
    EXPECT_THAT(taken.stacks, IsEmpty());
    waitpid(child, nullptr, 0);
  }
}

TEST_F(FindingText, AMessageOfWhichOneEndNamesTheWrongRank) {
  finding.fault = Fault::unmatched_message;
  finding.culprits = {1};
  finding.wrong_peer = WrongPeer{.from = 1, .to = 2, .named = 3, .tag = 9};
  EXPECT_EQ(headline_text(), "rank 1 sent rank 3 a message with tag 9, for which rank 2 waits");
  finding.culprits = {2};
  finding.wrong_peer->by_receiver = true;
  EXPECT_EQ(headline_text(), "rank 2 waits for a message from rank 3, but rank 1 has sent it one with tag 9");
}

/// The ranks may go on by themselves, but what they wait for looks wrong.
TEST_F(FindingText, ARankThatPollsForAnotherTag) {
  finding.fault = Fault::unmatched_message;
  finding.culprits = {1};
  finding.cycle = {2, 1};
  EXPECT_THAT(working_text(finding, view(), 4), testing::EndsWith("this may be their work"));
  finding.tags = TagMismatch{.from = 1, .to = 2, .sent = 4, .wanted = 3};
  EXPECT_THAT(
      working_text(finding, view(), 4),
      testing::EndsWith("this may be their work; if it is not: rank 1 sent rank 2 a message with tag 4, but rank 2 "
                        "waits for tag 3"));
}

TEST_F(FindingText, ARankThatEndsBeforeItsFirstCall) {
  sample.ranks.erase(sample.ranks.begin() + 2);
  for (RankSnapshot& rank : sample.ranks) {
    rank.launch_rank = rank.world_rank;
    rank.launch_size = 4;
    rank.world_rank = -1;
    rank.state = ProcessState::starting;
    rank.threads[0].in_mpi = true;
    rank.threads[0].current = telemetry::CallSnapshot{};
    rank.threads[0].current->function = telemetry::number_of("MPI_Init");
  }
  finding.fault = Fault::crash;
  finding.cause = Cause::starting;
  finding.without_process = true;
  finding.culprits = {2};
  finding.held_up = {0, 1, 3};
  EXPECT_EQ(headline_text(), "rank 2 ended before MPI_Init, in which the others are");
  EXPECT_EQ(summary_text(), "3 of 4 ranks wait in MPI_Init.");
  EXPECT_THAT(evidence(finding, view()), testing::Contains(HasSubstr("no process has this rank any more")));
}

TEST_F(FindingText, AProbeOfARankForWhichOthersWaitInACollectiveCall) {
  finding.fault = Fault::unmatched_message;
  finding.alone = true;
  finding.culprits = {0};
  sample.call(0, "MPI_Probe", telemetry::any_rank);
  barrier_from(1);
  EXPECT_THAT(advice(finding, view()), HasSubstr("look whether rank 0 leaves out MPI_Barrier"));
}

TEST_F(FindingText, APartitionedSendThatIsNotReady) {
  finding.fault = Fault::unmatched_message;
  finding.partitioned = true;
  finding.culprits = {0};
  EXPECT_THAT(headline_text(), HasSubstr("not marked ready (MPI_Pready)"));
  EXPECT_THAT(advice(finding, view()), HasSubstr("calls MPI_Pready for each partition"));
}

}  // namespace
}  // namespace bestride::inline cli
