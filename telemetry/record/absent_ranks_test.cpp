// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/absent_ranks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// This process launches ranks, each of which is "sleep", with the environment of Hydra.
class AbsentRanksTest : public testing::Test {
 protected:
  ~AbsentRanksTest() override {
    for (const int pid : started_) end(pid);
  }
  int launch(int rank, int local_size = size) {
    return launch({"PMI_RANK=" + std::to_string(rank), "MPI_LOCALNRANKS=" + std::to_string(local_size),
                   "BESTRIDE_WATCHER=" + watcher_});
  }
  int launch(std::vector<std::string> environment) {
    std::vector<char*> variables;
    for (std::string& each : environment) variables.push_back(each.data());
    variables.push_back(nullptr);
    char name[] = "sleep", time[] = "100";
    char* words[] = {name, time, nullptr};
    int started[2];
    EXPECT_EQ(pipe2(started, O_CLOEXEC), 0);
    const int pid = fork();
    if (pid == 0) {
      execve("/bin/sleep", words, variables.data());
      _exit(1);
    }
    close(started[1]);
    char byte;
    EXPECT_EQ(read(started[0], &byte, 1), 0);  // it has become the other program
    close(started[0]);
    started_.push_back(pid);
    return pid;
  }
  void end(int pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  /// A rank that has a record and is in MPI_Init.
  RankSnapshot in_init(int rank, int pid) const {
    RankSnapshot snapshot;
    snapshot.pid = pid;
    snapshot.host = "node";
    snapshot.watcher = watcher_;
    snapshot.alive = snapshot.visible = true;
    snapshot.launch_rank = rank;
    snapshot.launch_size = size;
    return snapshot;
  }

  static constexpr int size = 3;

 private:
  std::vector<int> started_;
  std::string watcher_ = "node:" + std::to_string(getpid()) + ":1:2";
};

TEST_F(AbsentRanksTest, OneThatRunsAndOneThatHasEnded) {
  const RankSnapshot first = in_init(0, launch(0));
  const int running = launch(1), ended = launch(2);
  AbsentRanks absent = find_absent_ranks({first});
  EXPECT_THAT(absent.processes, SizeIs(2));
  EXPECT_THAT(absent.ended, IsEmpty());
  end(ended);
  absent = find_absent_ranks({first});
  ASSERT_THAT(absent.processes, SizeIs(1));
  EXPECT_THAT(absent.ended, ElementsAre(2));
  const RankSnapshot& found = absent.processes[0];
  EXPECT_EQ(found.pid, running);
  EXPECT_EQ(found.launch_rank, 1);
  EXPECT_EQ(found.process_start, process_status(running).start_time);
  EXPECT_TRUE(found.alive && found.visible && found.unrecorded);
  EXPECT_TRUE(found.executable.ends_with("sleep")) << found.executable;
  EXPECT_EQ(found.host, "node");
}

TEST_F(AbsentRanksTest, AZombieHasEnded) {
  const RankSnapshot first = in_init(0, launch(0));
  launch(1);
  kill(launch(2), SIGKILL);
  AbsentRanks absent;
  for (int i = 0; i < 1000 && absent.ended.empty(); ++i, usleep(1000)) absent = find_absent_ranks({first});
  EXPECT_THAT(absent.ended, ElementsAre(2));
}

TEST_F(AbsentRanksTest, RanksOfOtherHostsMayRun) {
  const RankSnapshot first = in_init(0, launch(0, 1));
  EXPECT_THAT(find_absent_ranks({first}).ended, IsEmpty());
}

/// The launcher has created a process, which has not loaded its program.
TEST_F(AbsentRanksTest, AProcessWithoutARankMayBecomeOne) {
  const RankSnapshot first = in_init(0, launch(0));
  const int other = launch({"PATH=/bin"});
  EXPECT_THAT(find_absent_ranks({first}).ended, IsEmpty());
  end(other);
  EXPECT_THAT(find_absent_ranks({first}).ended, ElementsAre(1, 2));
}

TEST_F(AbsentRanksTest, RanksOfOtherJobs) {
  const RankSnapshot first = in_init(0, launch(0));
  launch({"PMI_RANK=1", "BESTRIDE_WATCHER=node:1:1:1"});
  EXPECT_THAT(find_absent_ranks({first}).processes, IsEmpty());
}

TEST_F(AbsentRanksTest, AllAreThereOrPastMpiInit) {
  RankSnapshot first = in_init(0, launch(0));
  const std::vector<RankSnapshot> all = {first, in_init(1, launch(1)), in_init(2, launch(2))};
  EXPECT_THAT(find_absent_ranks(all).processes, IsEmpty());
  first.world_rank = 0;
  EXPECT_THAT(find_absent_ranks({first}).processes, IsEmpty());
  EXPECT_THAT(find_absent_ranks({}).processes, IsEmpty());
}

}  // namespace
}  // namespace bestride::inline telemetry
