// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/process_stacks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "telemetry/record/process_state.hpp"
#include "telemetry/stacks/frame_names.hpp"
#include "telemetry/stacks/refusal.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A loop that waits for something that happens sooner or later calls this; after a minute it is false.
bool pause_before_retry(int& retries) {
  usleep(5000);
  return ++retries < 12000;
}

/// The sample program (first argument of the test), until the end of the test.
class Sample {
 public:
  explicit Sample(const char* mode) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const std::string path = testing::internal::GetArgvs().at(1);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      execl(path.c_str(), path.c_str(), mode, nullptr);
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    char text[6];
    if (read(output_, text, sizeof text) != sizeof text) std::abort();
  }
  ~Sample() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(output_);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  int pid() const { return pid_; }
  char state() const { return process_status(pid_).state; }
  void wait_for_state(char wanted) const {
    for (int retries = 0; state() != wanted;) ASSERT_TRUE(pause_before_retry(retries)) << "state " << state();
  }
  bool has_written() const {
    pollfd wait{output_, POLLIN, 0};
    return poll(&wait, 1, 0) != 0;
  }
  /// Fails unless it goes on computing.
  void expect_running() const {
    const auto before = process_status(pid_).cpu_time;
    for (int retries = 0; process_status(pid_).cpu_time < before + 3;)
      ASSERT_TRUE(pause_before_retry(retries)) << "does not run any more, state " << state();
  }

 private:
  int pid_ = 0;
  int output_ = -1;
};

int tracer_of(int pid, int tid = 0) { return trace_facts(pid, tid ? tid : pid, EPERM).tracer; }

std::vector<NamedFrame> names(const ProcessStacks& process, const ThreadStack& stack) {
  FrameNames names;
  return names.name(process, stack);
}

/// Functions of the sample program, outermost first.
std::vector<std::string> own_functions(const ProcessStacks& process, const ThreadStack& stack) {
  std::vector<std::string> result;
  for (const NamedFrame& frame : names(process, stack))
    if (frame.function == "main" || frame.function.starts_with("sample::")) result.push_back(frame.function);
  return result;
}

/// Takes the stacks until the main thread is in `function`: the sample gets there soon after it is ready.
ProcessStacks stacks_in(int pid, const std::string& function, const StackOptions& options = {}) {
  for (int retries = 0;;) {
    auto stacks = take_stacks(pid, options);
    if (stacks && stacks->threads.at(0).problem.empty() && !stacks->threads.at(0).frames.empty()) {
      const auto functions = own_functions(*stacks, stacks->threads[0]);
      if (!functions.empty() && functions.back() == function) return *stacks;
    }
    if (!pause_before_retry(retries)) {
      ADD_FAILURE() << function << " was not seen: " << (stacks ? stacks->threads.at(0).problem : stacks.error().text);
      std::exit(1);
    }
  }
}

/// The number of the line of the sample program (second argument of the test) that contains `text`.
int line_of(const std::string& text) {
  std::ifstream file(testing::internal::GetArgvs().at(2));
  int number = 0;
  for (std::string line; std::getline(file, line);)
    if (++number; line.find(text) != std::string::npos) return number;
  return -1;
}

/// False in a container without the right to trace even children.
bool may_trace() {
  const int child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  const bool may = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return may;
}

class Stacks : public testing::Test {
 protected:
  void SetUp() override {
    if (!stacks_available()) GTEST_SKIP() << "no libdw in this build";
    static const bool permitted = may_trace();
    if (!permitted) GTEST_SKIP() << "ptrace is not permitted here";
  }
};

TEST_F(Stacks, AChainOfCallsWithoutFramePointers) {
  const Sample sample("chain");
  const ProcessStacks stacks = stacks_in(sample.pid(), "sample::sleep_long");
  ASSERT_EQ(stacks.threads.size(), 1u);
  const ThreadStack& stack = stacks.threads[0];
  EXPECT_EQ(stack.tid, sample.pid());
  EXPECT_TRUE(stack.main);
  EXPECT_EQ(stack.cut, "");
  EXPECT_EQ(stacks.executable, std::filesystem::canonical(testing::internal::GetArgvs().at(1)).string());
  EXPECT_THAT(own_functions(stacks, stack),
              ElementsAre("main", "sample::Solver::step", "sample::inner", "sample::inlined", "sample::sleep_long"));
  int lines = 0;
  for (const NamedFrame& frame : names(stacks, stack))
    for (const auto& [function, text] :
         {std::pair("sample::Solver::step", "line of step's call"), std::pair("sample::inner", "line of inner's call"),
          std::pair("sample::inlined", "line of the inlined function's call")})
      if (frame.function == function) {
        EXPECT_EQ(frame.line, line_of(text)) << function;
        ++lines;
      }
  EXPECT_EQ(lines, 3);
}

TEST_F(Stacks, TheTimesOfTheStopsAreReported) {
  const Sample sample("threads");
  const auto stacks = take_stacks(sample.pid());
  ASSERT_TRUE(stacks) << stacks.error().text;
  EXPECT_GT(stacks->longest_stop.count(), 0);
  EXPECT_GT(stacks->all_stops, stacks->longest_stop);
  RecordProperty("longest_stop_ns", std::to_string(stacks->longest_stop.count()));
  RecordProperty("all_stops_ns", std::to_string(stacks->all_stops.count()));
}

TEST_F(Stacks, ASleepingProcessSleepsOn) {
  const Sample sample("chain");
  stacks_in(sample.pid(), "sample::sleep_long");
  sample.wait_for_state('S');
  EXPECT_EQ(tracer_of(sample.pid()), 0);
  stacks_in(sample.pid(), "sample::sleep_long");
}

TEST_F(Stacks, ARunningProcessRunsOn) {
  const Sample sample("spin");
  const ProcessStacks stacks = stacks_in(sample.pid(), "sample::spin");
  EXPECT_EQ(tracer_of(sample.pid()), 0);
  EXPECT_THAT(own_functions(stacks, stacks.threads[0]), ElementsAre("main", "sample::spin"));
  sample.expect_running();
}

TEST_F(Stacks, AStoppedProcessStaysStopped) {
  const Sample sample("spin");
  stacks_in(sample.pid(), "sample::spin");
  kill(sample.pid(), SIGSTOP);
  sample.wait_for_state('T');
  const auto before = process_status(sample.pid()).cpu_time;
  for (int i = 0; i < 3; ++i) {
    const auto stacks = take_stacks(sample.pid());
    ASSERT_TRUE(stacks) << stacks.error().text;
    EXPECT_THAT(own_functions(*stacks, stacks->threads[0]), ElementsAre("main", "sample::spin"));
    sample.wait_for_state('T');
    EXPECT_EQ(tracer_of(sample.pid()), 0);
  }
  usleep(50000);
  EXPECT_EQ(sample.state(), 'T');
  EXPECT_EQ(process_status(sample.pid()).cpu_time, before);
  kill(sample.pid(), SIGCONT);
  sample.expect_running();
}

TEST_F(Stacks, SignalsAreNotLost) {
  const Sample sample("signals");
  for (int i = 0; i < 300; ++i) {
    const auto stacks = take_stacks(sample.pid());
    ASSERT_TRUE(stacks) << stacks.error().text;
  }
  EXPECT_FALSE(sample.has_written());
  sample.expect_running();
  EXPECT_FALSE(sample.has_written());
}

TEST_F(Stacks, AllThreads) {
  const Sample sample("threads");
  const auto stacks = take_stacks(sample.pid());
  ASSERT_TRUE(stacks) << stacks.error().text;
  ASSERT_EQ(stacks->threads.size(), 5u);
  int workers = 0, writers = 0;
  for (std::size_t i = 0; i < stacks->threads.size(); ++i) {
    const ThreadStack& stack = stacks->threads[i];
    EXPECT_EQ(stack.problem, "");
    EXPECT_EQ(stack.main, i == 0);
    EXPECT_EQ(tracer_of(sample.pid(), stack.tid), 0);
    if (stack.name == "writer-7") {
      ++writers;
    } else if (!stack.main) {
      EXPECT_THAT(own_functions(*stacks, stack), testing::Contains("sample::worker"));
      ++workers;
    }
  }
  EXPECT_EQ(workers, 3);
  EXPECT_EQ(writers, 1);
}

TEST_F(Stacks, OfAProcessWhoseMainThreadHasEnded) {
  const Sample sample("left");
  for (int retries = 0; process_status(sample.pid(), sample.pid()).state != 'Z';)
    ASSERT_TRUE(pause_before_retry(retries));
  const auto stacks = take_stacks(sample.pid());
  ASSERT_TRUE(stacks) << stacks.error().text;
  ASSERT_EQ(stacks->threads.size(), 2u);
  EXPECT_EQ(stacks->threads[0].name, "library");
  EXPECT_THAT(own_functions(*stacks, stacks->threads[1]), testing::Contains("sample::worker"));
  for (const ThreadStack& stack : stacks->threads) EXPECT_FALSE(stack.main);
  EXPECT_THAT(stacks->executable, HasSubstr("sample"));
}

TEST_F(Stacks, LongStacksAreCut) {
  const Sample sample("recursion");
  const ProcessStacks some = stacks_in(sample.pid(), "sample::sleep_long");
  EXPECT_EQ(some.threads[0].frames.size(), 512u);
  EXPECT_EQ(some.threads[0].cut, "more than 512 frames");
  const ProcessStacks short_copy =
      stacks_in(sample.pid(), "sample::sleep_long", {.stack_bytes = 64 << 10, .most_frames = 100000});
  EXPECT_EQ(short_copy.threads[0].cut, "the stack is longer than the 64 KiB that were copied");
  EXPECT_GT(short_copy.threads[0].frames.size(), 100u);
  const ProcessStacks all =
      stacks_in(sample.pid(), "sample::sleep_long", {.stack_bytes = 8 << 20, .most_frames = 100000});
  EXPECT_EQ(all.threads[0].cut, "");
  EXPECT_EQ(own_functions(all, all.threads[0]).size(), 4001u + 2u);  // main, recurse, sleep_long
}

TEST_F(Stacks, AnUninterruptibleProcessIsReportedAndLeftAlone) {
  const Sample sample("uninterruptible");
  sample.wait_for_state('D');
  const auto stacks = take_stacks(sample.pid(), {.thread_wait = std::chrono::milliseconds(30)});
  ASSERT_TRUE(stacks) << stacks.error().text;
  ASSERT_EQ(stacks->threads.size(), 1u);
  EXPECT_THAT(stacks->threads[0].problem, HasSubstr("can't be interrupted (D"));
  EXPECT_TRUE(stacks->threads[0].frames.empty());
  EXPECT_EQ(sample.state(), 'D');
  EXPECT_EQ(tracer_of(sample.pid()), 0);
}

TEST_F(Stacks, ThreadsBeyondTheLimitOfStopsAreLeftOut) {
  const Sample sample("threads");
  const auto stacks = take_stacks(sample.pid(), {.stop_limit = std::chrono::milliseconds(0)});
  ASSERT_TRUE(stacks) << stacks.error().text;
  ASSERT_EQ(stacks->threads.size(), 5u);
  for (const ThreadStack& stack : stacks->threads) EXPECT_THAT(stack.problem, HasSubstr("0 ms, which is the limit"));
  EXPECT_EQ(stacks->all_stops.count(), 0);
}

TEST_F(Stacks, ProcessesThatEnd) {
  const int gone = fork();
  if (gone == 0) _exit(0);
  for (int retries = 0; process_status(gone).state != 'Z';) ASSERT_TRUE(pause_before_retry(retries));
  const auto zombie = take_stacks(gone);
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().text, "process " + std::to_string(gone) + " has ended");
  waitpid(gone, nullptr, 0);
  const auto none = take_stacks(gone);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text, "there is no process " + std::to_string(gone));
  EXPECT_FALSE(take_stacks(0));
  EXPECT_FALSE(take_stacks(-1));
}

TEST_F(Stacks, AProcessThatEndsMeanwhile) {
  for (int round = 0; round < 20; ++round) {
    const Sample sample("threads");
    std::thread killer([&] {
      usleep(static_cast<useconds_t>(100 * round));
      kill(sample.pid(), SIGKILL);
    });
    std::string error;
    for (int retries = 0; error.empty() && retries < 100000; ++retries)
      if (const auto stacks = take_stacks(sample.pid()); !stacks) error = stacks.error().text;
    killer.join();
    EXPECT_THAT(error, HasSubstr("ended"));
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(sample.pid()), &info, WEXITED | WNOWAIT), 0) << "was reaped";
    EXPECT_EQ(info.si_status, SIGKILL);
  }
}

TEST_F(Stacks, AProcessThatIsKilledWhileItIsWaitedFor) {
  const Sample sample("uninterruptible");
  sample.wait_for_state('D');
  std::thread killer([&] {
    for (int retries = 0; tracer_of(sample.pid()) == 0 && pause_before_retry(retries);) {
    }
    kill(sample.pid(), SIGKILL);
  });
  const std::chrono::minutes minute(1);
  const auto stacks = take_stacks(sample.pid(), {.thread_wait = minute, .process_wait = minute});
  killer.join();
  ASSERT_FALSE(stacks);
  EXPECT_THAT(stacks.error().text, HasSubstr("ended"));
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(sample.pid()), &info, WEXITED | WNOWAIT), 0) << "was reaped";
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST_F(Stacks, TheErrorNamesAnotherTracer) {
  const Sample sample("spin");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int tracer = fork();
  if (tracer == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool done = ptrace(PTRACE_SEIZE, sample.pid(), nullptr, nullptr) == 0;
    (void)!write(ends[1], done ? "y" : "n", 1);
    while (true) pause();
  }
  char answer = 'n';
  EXPECT_EQ(read(ends[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto stacks = take_stacks(sample.pid());
  ASSERT_FALSE(stacks);
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  EXPECT_THAT(stacks.error().text, HasSubstr(": process " + std::to_string(tracer) + " (" + name + ") traces it"));
  EXPECT_EQ(tracer_of(sample.pid()), tracer);
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  stacks_in(sample.pid(), "sample::spin");
}

TEST_F(Stacks, ThisProcessIsRefused) {
  const auto stacks = take_stacks(getpid());
  ASSERT_FALSE(stacks);
  EXPECT_THAT(stacks.error().text, HasSubstr("can't trace itself"));
}

TEST_F(Stacks, AProcessOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const Sample sample("spin");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int other = fork();
  if (other == 0) {
    std::string text = "no other user";
    if (setuid(65534) == 0) {
      const auto stacks = take_stacks(sample.pid());
      text = stacks ? "not refused" : stacks.error().text;
    }
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  char text[256] = "";
  EXPECT_GT(read(ends[0], text, sizeof text - 1), 0);
  waitpid(other, nullptr, 0);
  close(ends[0]);
  EXPECT_THAT(text, HasSubstr("it belongs to user 0; run this as that user or as root"));
  sample.expect_running();
}

TEST(Refusal, SaysWhatWouldAllowIt) {
  const auto text = [](int tracer, unsigned owner, unsigned user, int yama, int error = EPERM) {
    return refusal_text({7, error, tracer, "gdb", owner, user, yama});
  };
  EXPECT_EQ(text(12, 1000, 1000, 1), "process 7 can't be traced: process 12 (gdb) traces it; end that one first");
  EXPECT_THAT(text(0, 1001, 1000, 1), HasSubstr("it belongs to user 1001"));
  EXPECT_THAT(text(0, 1000, 1000, 1), HasSubstr("kernel.yama.ptrace_scope is 1, so only a parent may trace"));
  EXPECT_THAT(text(0, 1000, 1000, 2), HasSubstr("kernel.yama.ptrace_scope is 2; run this as root"));
  EXPECT_THAT(text(0, 1000, 0, 3), HasSubstr("kernel.yama.ptrace_scope is 3, which can't be changed"));
  for (const int yama : {-1, 0}) EXPECT_THAT(text(0, 1000, 1000, yama), HasSubstr("--cap-add SYS_PTRACE"));
  EXPECT_THAT(text(0, 1000, 0, 1), HasSubstr("--cap-add SYS_PTRACE"));
  EXPECT_EQ(text(0, 1000, 1000, 0, EIO), "process 7 can't be traced: Input/output error");
}

}  // namespace
}  // namespace bestride::inline telemetry
