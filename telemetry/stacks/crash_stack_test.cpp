// SPDX-License-Identifier: Apache-2.0
// read_crash_stack() of files that write_crash_file() has written in a signal handler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "telemetry/record/crash_file.hpp"
#include "telemetry/stacks/frame_names.hpp"
#include "telemetry/stacks/process_stacks.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string path;

void write_text(int file) {
  const std::string text = "  File \"solver.py\", line 12 in load\n";
  if (write(file, text.data(), text.size()) < 0) _exit(1);
}

void leave_stack(int, siginfo_t*, void* context) {
  _exit(write_crash_file(path.c_str(), *static_cast<const ucontext_t*>(context), write_text) ? 0 : 1);
}

[[gnu::noinline]] void write_nowhere(volatile int* nowhere) { *nowhere = 1; }
[[gnu::noinline]] void call_nothing(void (*nothing)()) {
  nothing();
  asm volatile("");  // no jump in place of the call
}
bool calls_nothing = false;
/// The frames take part of the stack.
[[gnu::noinline]] int recurse(int depth, int from) {
  volatile char part[1000];
  part[0] = static_cast<char>(from);
  // A null pointer is found by sanitizers before.
  if (depth == 0 && calls_nothing) call_nothing(reinterpret_cast<void (*)()>(16));
  if (depth == 0) write_nowhere(reinterpret_cast<int*>(16));
  return depth == 0 ? 0 : recurse(depth - 1, part[0]) + part[0];
}

class CrashStack : public testing::Test {
 protected:
  CrashStack() {
    const char* const folder = std::getenv("TMPDIR");
    path = std::string(folder ? folder : "/tmp") + "/bestride-crash-" + std::to_string(getpid());
    unlink(path.c_str());
  }
  ~CrashStack() override { unlink(path.c_str()); }

  /// A child crashes below `depth` calls. Its pid.
  static int crash(int depth, bool overflow = false) {
    const int pid = fork();
    if (pid == 0) {
      stack_t own{};
      own.ss_size = 256 << 10;
      own.ss_sp = mmap(nullptr, own.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      sigaltstack(&own, nullptr);
      struct sigaction action {};
      action.sa_sigaction = leave_stack;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(SIGSEGV, &action, nullptr);
      recurse(overflow ? 1 << 30 : depth, depth);
      _exit(2);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    return pid;
  }
  static std::vector<std::string> functions(const ProcessStacks& process) {
    FrameNames names;
    std::vector<std::string> result;
    for (const NamedFrame& frame : names.name(process, process.threads.at(0)))
      if (frame.function.find("recurse") != std::string::npos ||
          frame.function.find("write_nowhere") != std::string::npos ||
          frame.function.find("call_nothing") != std::string::npos)
        result.push_back(frame.function.substr(frame.function.rfind(':') + 1));
    return result;
  }
  static std::string refused(int pid) {
    const auto stacks = read_crash_stack(path, pid);
    EXPECT_FALSE(stacks);
    return stacks ? "" : stacks.error().text;
  }
  static std::string contents() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void write(const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }
};

TEST_F(CrashStack, FunctionsOfTheThread) {
  const int pid = crash(2);
  const auto stacks = read_crash_stack(path, pid);
  ASSERT_TRUE(stacks) << stacks.error().text;
  ASSERT_EQ(stacks->threads.size(), 1u);
  EXPECT_TRUE(stacks->threads[0].main);
  EXPECT_EQ(stacks->threads[0].cut, "");
  EXPECT_EQ(stacks->threads[0].interpreted, "  File \"solver.py\", line 12 in load\n");
  EXPECT_THAT(functions(*stacks), ElementsAre("recurse", "recurse", "recurse", "write_nowhere"));
}

TEST_F(CrashStack, OfACallThroughANullPointer) {
  calls_nothing = true;
  const int pid = crash(1);
  calls_nothing = false;
  const auto stacks = read_crash_stack(path, pid);
  ASSERT_TRUE(stacks) << stacks.error().text;
  EXPECT_EQ(stacks->threads[0].cut, "");
  EXPECT_THAT(functions(*stacks), ElementsAre("recurse", "recurse", "call_nothing"));
}

TEST_F(CrashStack, OfALongStackTheInnermostFrames) {
  const auto stacks = read_crash_stack(path, crash(400));
  ASSERT_TRUE(stacks) << stacks.error().text;
  EXPECT_THAT(stacks->threads[0].cut, HasSubstr("256 KiB"));
  const auto found = functions(*stacks);
  EXPECT_GT(found.size(), 100u);
  EXPECT_EQ(found.back(), "write_nowhere");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(CrashStack, AfterAnOverflow) {
  const auto stacks = read_crash_stack(path, crash(0, true));
  ASSERT_TRUE(stacks) << stacks.error().text;
  EXPECT_GT(functions(*stacks).size(), 100u);
}
#endif

TEST_F(CrashStack, FilesThatAreNotWhole) {
  EXPECT_THAT(refused(1), HasSubstr("No such file"));
  const int pid = crash(1);
  EXPECT_THAT(refused(pid + 1), HasSubstr("another process"));
  const std::string good = contents();
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, sizeof(CrashHeader) - 1}) {
    write(good.substr(0, length));
    EXPECT_THAT(refused(pid), HasSubstr("not whole"));
  }
  for (const std::size_t length : {sizeof(CrashHeader), good.size() / 2, good.size() - 100}) {
    write(good.substr(0, length));
    EXPECT_THAT(refused(pid), HasSubstr("damaged"));
  }
  // Any other byte: an answer or an error.
  unsigned seed = 1;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 1 + round % 8; ++i) {
      seed = seed * 1664525 + 1013904223;
      const std::size_t range = round % 2 ? sizeof(CrashHeader) : bytes.size();
      bytes[8 + (seed >> 8) % (range - 8)] = static_cast<char>(seed);
    }
    write(bytes);
    const auto stacks = read_crash_stack(path, pid);
    if (stacks) functions(*stacks);
  }
}

TEST_F(CrashStack, AnExistingFileIsNotReplaced) {
  write("mine");
  const int pid = fork();
  if (pid == 0) {
    ucontext_t here{};
    getcontext(&here);
    _exit(write_crash_file(path.c_str(), here) ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(contents(), "mine");
}

}  // namespace
}  // namespace bestride::inline telemetry
