// SPDX-License-Identifier: Apache-2.0
// Whether the process of a record lives, if its pid can't be looked up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "telemetry/record/process_state.hpp"
#include "telemetry/record/reader.hpp"
#include "telemetry/record/sample_record.hpp"

namespace bestride::inline telemetry {
namespace {

struct Liveness : testing::Test {
  Liveness() { begin_record(*sample, getpid(), own_start_time(), 3, 8); }
  ~Liveness() override { unlink(path.c_str()); }

  RankSnapshot good() const {
    write_file(path, sample.bytes());
    auto rank = read_record(path);
    EXPECT_TRUE(rank) << rank.error().text;
    return rank ? std::move(*rank) : RankSnapshot{};
  }

  const std::string path = "/tmp/bestride-liveness-" + std::to_string(getpid());
  SampleRecord sample;
};

TEST_F(Liveness, AProcessOfAnotherPidNamespaceLivesWhileItHoldsItsLock) {
  sample->header.pid_namespace = own_pid_namespace() + 1;
  EXPECT_TRUE(good().alive) << "whether it has a lock is not known";
  sample->header.locked = 1;
  EXPECT_TRUE(good().gone());
  write_file(path, sample.bytes());
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(file, F_OFD_SETLK, &lock), 0);
  const auto held = read_record(path);
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->alive);
  EXPECT_FALSE(held->visible);
  close(file);
  EXPECT_TRUE(read_record(path)->gone());
}

/// As in a container that hides /proc/sys, or without /proc.
TEST_F(Liveness, AProcessThatDoesNotKnowItsSystemLives) {
  sample->header.boot_id[0] = '\0';
  EXPECT_TRUE(good().visible);
  sample->header.pid_namespace = 0;
  sample->header.process_start = 0;
  const RankSnapshot rank = good();
  EXPECT_TRUE(rank.alive);
  EXPECT_FALSE(rank.visible);
}

/// As a program whose initial thread calls pthread_exit().
TEST_F(Liveness, AProcessWhoseInitialThreadHasEndedLivesInOthers) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);
  }
  ASSERT_GT(child, 0);
  while (process_status(child).state != 'Z') usleep(1000);
  begin_record(*sample, child, process_status(child).start_time, 3, 8);
  EXPECT_FALSE(is_ending(child));
  EXPECT_TRUE(good().alive);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_ending(child));
  EXPECT_FALSE(good().alive);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_ending(child));
}

}  // namespace
}  // namespace bestride::inline telemetry
