// SPDX-License-Identifier: Apache-2.0
// How and in which order processes end.
#include "cli/job/local_ranks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include "telemetry/record/sample_record.hpp"

namespace bestride::inline cli {
namespace {

/// The kernel tells the wait status of a process that was waited for, from Linux 6.15 on.
bool kernel_keeps_statuses() {
  utsname system{};
  int major = 0, minor = 0;
  return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(6, 15);
}

/// A folder of records with an empty job. The caller removes it.
std::string job_folder() {
  char name[] = "/tmp/bestride-ranks-XXXXXX";
  const std::string folder = mkdtemp(name);
  std::filesystem::create_directory(folder + "/job");
  return folder;
}

/// A process that only waits, with a record in the job. `holds_record`: it has opened its record.
pid_t start_rank(const std::string& folder, int rank, int ranks, bool holds_record = false) {
  int ready[2], opened[2];
  EXPECT_EQ(pipe(ready), 0);
  EXPECT_EQ(pipe(opened), 0);
  const auto record_of = [&folder](pid_t process) { return folder + "/job/" + std::to_string(process) + ".record"; };
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    // SIGUSR1: the record is closed, and the process goes on, as after exec().
    signal(SIGUSR1, [](int) { close_range(STDERR_FILENO + 1, ~0U, 0); });
    if (read(ready[0], &byte, 1) != 1 || (holds_record && open(record_of(getpid()).c_str(), O_RDWR) < 0) ||
        write(opened[1], &byte, 1) != 1)
      _exit(1);
    for (;;) pause();
  }
  SampleRecord record;
  begin_record(*record, child, process_status(child).start_time, rank, ranks);
  write_file(record_of(child), record.bytes());
  EXPECT_EQ(write(ready[1], &byte, 1), 1);
  EXPECT_EQ(read(opened[0], &byte, 1), 1);
  for (const int descriptor : {ready[0], ready[1], opened[0], opened[1]}) close(descriptor);
  return child;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

TEST(LocalRanks, HowAProcessEndedIsKnownAfterItsParentHasWaitedForIt) {
  const std::string folder = job_folder();
  const pid_t child = start_rank(folder, 0, 1);
  LocalRanks local(folder, "job");
  ASSERT_EQ(local.read(0).ranks.size(), 1u);
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(local.note_ends(2));
  EXPECT_EQ(local.read(0).ranks.at(0).wait_status, kernel_keeps_statuses() ? SIGTERM : -1);
  std::filesystem::remove_all(folder);
}

TEST(LocalRanks, AProcessThatEndsWhileRecordsAreReadIsNotedThen) {
  const std::string folder = job_folder();
  const pid_t child = start_rank(folder, 0, 1);
  LocalRanks local(folder, "job");
  ASSERT_EQ(local.read(0).ranks.size(), 1u);
  EXPECT_FALSE(local.note_ends(2));
  kill(child, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  const RankSnapshot rank = local.read(0).ranks.at(0);
  EXPECT_EQ(rank.wait_status, SIGKILL);
  EXPECT_EQ(rank.ended, 2);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(local.note_ends(3)) << "an end that nobody has been told of";
  EXPECT_FALSE(local.note_ends(4));
  std::filesystem::remove_all(folder);
}

TEST(LocalRanks, OfProcessesThatEndedBetweenTwoLooksTheFirstIsKnown) {
  const std::string folder = job_folder();
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < 70; ++rank) {  // more than one batch of events
      ranks.push_back(start_rank(folder, rank, 70));
    }
    LocalRanks local(folder, "job");
    ASSERT_EQ(local.read(0).ranks.size(), ranks.size());
    EXPECT_FALSE(local.note_ends(1));
    std::shuffle(ranks.begin(), ranks.end(), random);
    for (const pid_t rank : ranks) {
      kill(rank, SIGKILL);
      siginfo_t ended{};
      waitid(P_PID, static_cast<id_t>(rank), &ended, WEXITED | WNOWAIT);
    }
    EXPECT_TRUE(local.note_ends(2));
    EXPECT_FALSE(local.note_ends(3));
    std::vector<std::pair<double, pid_t>> ends;
    for (const RankSnapshot& rank : local.read(0).ranks) {
      EXPECT_EQ(rank.wait_status, SIGKILL);
      ends.emplace_back(rank.ended, rank.pid);
    }
    std::sort(ends.begin(), ends.end());
    std::vector<pid_t> order;
    order.reserve(ends.size());
    for (const auto& [when, pid] : ends) order.push_back(pid);
    EXPECT_EQ(order, ranks);
    for (const pid_t rank : ranks) {
      waitpid(rank, nullptr, 0);
      std::filesystem::remove(folder + "/job/" + std::to_string(rank) + ".record");
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(LocalRanks, TheOrderIsCertainOfProcessesThatHeldTheirRecords) {
  const std::string folder = job_folder();
  const pid_t first = start_rank(folder, 0, 3, true), second = start_rank(folder, 1, 3, true),
              other = start_rank(folder, 2, 3);
  LocalRanks local(folder, "job");
  ASSERT_EQ(local.read(0).ranks.size(), 3u);
  for (const pid_t process : {second, other, first}) end(process);
  EXPECT_TRUE(local.note_ends(2));
  const JobSnapshot job = local.read(0);
  const auto rank_of = [&](pid_t process) {
    return *std::find_if(job.ranks.begin(), job.ranks.end(),
                         [process](const auto& rank) { return rank.pid == process; });
  };
  EXPECT_TRUE(rank_of(first).ended_in_order && rank_of(second).ended_in_order);
  EXPECT_FALSE(rank_of(other).ended_in_order);
  EXPECT_LT(rank_of(second).ended, rank_of(first).ended);
  EXPECT_GE(rank_of(second).ended, 2);
  EXPECT_FALSE(local.note_ends(3));
  std::filesystem::remove_all(folder);
}

TEST(LocalRanks, AProcessThatHasClosedItsRecordAndGoesOnIsAlive) {
  const std::string folder = job_folder();
  const pid_t child = start_rank(folder, 0, 1, true);
  LocalRanks local(folder, "job");
  ASSERT_EQ(local.read(0).ranks.size(), 1u);
  kill(child, SIGUSR1);
  while (!local.note_ends(2)) usleep(1000);
  EXPECT_TRUE(local.read(0).ranks.at(0).alive);
  end(child);
  EXPECT_TRUE(local.note_ends(3));
  const RankSnapshot rank = local.read(0).ranks.at(0);
  EXPECT_FALSE(rank.alive || rank.ended_in_order);
  EXPECT_GE(rank.ended, 3);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bestride::inline cli
