// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/window.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace bestride::inline collectives {
namespace {

TEST(Window, IsSharedByKey) {
  Window window = Window::create(10000);
  ASSERT_NE(window.data(), nullptr);
  window.data()[9999] = std::byte{0};
  const WindowKey key = window.key();
  const pid_t child = fork();
  if (child == 0) {
    Window opened = Window::open(key);
    if (!opened.data()) _exit(1);
    opened.data()[9999] = std::byte{7};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(window.data()[9999], std::byte{7});
}

TEST(Window, WrongKeyDoesNotOpenIt) {
  Window window = Window::create(10000);
  WindowKey key = window.key();
  ++key.magic;
  EXPECT_EQ(Window::open(key).data(), nullptr);
  key = window.key();
  window.close_descriptor();
  EXPECT_EQ(Window::open(key).data(), nullptr);
  EXPECT_EQ(Window::open({}).data(), nullptr);
}

TEST(Window, PagesOnDemandAreShared) {
  Window window = Window::create(std::size_t{1} << 30, Window::Pages::on_demand);
  ASSERT_NE(window.data(), nullptr);
  Window again = Window::open(window.key(), Window::Pages::on_demand);
  ASSERT_NE(again.data(), nullptr);
  EXPECT_GE(again.descriptor(), 0);
  again.data()[123456789] = std::byte{5};
  EXPECT_EQ(window.data()[123456789], std::byte{5});
}

/// From here on memfd_create fails in this process, as under a container's filter.
bool forbid_memory_files() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Window, IsAFileWhereMemoryFilesAreForbidden) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_memory_files()) _exit(77);
    Window window = Window::create(10000);
    if (!window.data()) _exit(1);
    Window opened = Window::open(window.key());
    if (!opened.data()) _exit(2);
    opened.data()[9999] = std::byte{7};
    _exit(window.data()[9999] == std::byte{7} ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(status, 0);
}

TEST(Window, IsNoStandardStreamOfAProgramThatHasClosedThem) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    const Window window = Window::create(10000);
    const Window opened = Window::open(window.key(), Window::Pages::on_demand);
    const bool above = window.key().descriptor > STDERR_FILENO && opened.key().descriptor > STDERR_FILENO;
    _exit(window.data() && opened.data() && above ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// The kernel would end the process by SIGXFSZ.
TEST(Window, FailsBeyondTheFileSizeLimit) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    _exit(Window::create(1 << 20).data() || !Window::create(1 << 19).data() ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Window, FailsBeyondTheMemoryOfTheMachine) { EXPECT_EQ(Window::create(std::size_t{1} << 50).data(), nullptr); }

}  // namespace
}  // namespace bestride::inline collectives
