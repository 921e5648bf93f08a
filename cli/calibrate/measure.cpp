// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/measure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

#include "cli/common/command.hpp"

namespace bestride::inline cli {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

/// The launcher gets the interrupt directly from the terminal; this process only has to survive it.
class HoldInterrupt {
 public:
  HoldInterrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_seen = 1; };
    interrupt_seen = 0;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~HoldInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  int out = -1, err = -1;
  bool own_group = false;
  /// Signals the child and everything it started on this host.
  void end(int signal) const { ::kill(own_group ? -pid : pid, signal); }
};

Child start(const std::vector<std::string>& command, bool own_group) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return {};
  if (::pipe2(err, O_CLOEXEC) != 0) {
    ::close(out[0]), ::close(out[1]);
    return {};
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(out[1], 1), ::dup2(err[1], 2);
    if (own_group) {
      ::setpgid(0, 0);
      // Without this, a launcher that reads in the background of a terminal would be stopped.
      if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
    }
    // The MPI library is to be measured without this library preloaded.
    ::unsetenv("LD_PRELOAD");
    ::setenv("BESTRIDE_DISABLE", "1", 1);
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    std::fprintf(stderr, "can't start '%s': %s\n", words[0], std::strerror(errno));
    ::_exit(127);
  }
  if (own_group && pid > 0) ::setpgid(pid, pid);  // also in the parent, because either process may run first
  ::close(out[1]), ::close(err[1]);
  return {pid, out[0], err[0], own_group};
}

/// The lines of a pipe, until its end or a deadline.
class Lines {
 public:
  Lines(int fd, std::optional<Clock::time_point> until) : fd_(fd), until_(until) {}
  /// Says so if the first line takes long to come.
  Lines(int fd, std::optional<Clock::time_point> until, const std::string& launcher) : Lines(fd, until) {
    launcher_ = launcher;
  }
  ~Lines() { ::close(fd_); }
  Lines(const Lines&) = delete;

  /// Reads one line without its newline; false at the end. Continues after an interrupt, unless the child has its own
  /// process group, which an interrupt ends.
  bool next(std::string* line) {
    for (;;) {
      if (const std::size_t end = held_.find('\n'); end != std::string::npos) {
        line->assign(held_, 0, end);
        held_.erase(0, end + 1);
        return true;
      }
      if (!read_more()) break;
    }
    *line = std::exchange(held_, "");
    return !line->empty();
  }
  bool late() const noexcept { return late_; }

 private:
  bool read_more() {
    for (;;) {
      if (!launcher_.empty() && !interrupt_seen) wait_for_start();
      if (until_ && !wait()) return false;
      char buffer[4096];
      const ssize_t got = ::read(fd_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      held_.append(buffer, static_cast<std::size_t>(got));
      return true;
    }
  }
  void wait_for_start() {
    constexpr int patience_ms = 10'000;
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, patience_ms) == 0)
      std::fprintf(stderr,
                   "bestride: '%s' has not started the measuring program for %d s; can it reach every host that it is "
                   "to use? (Ctrl-C ends it)\n",
                   launcher_.c_str(), patience_ms / 1000);
    launcher_.clear();
  }
  bool wait() {
    while (!interrupt_seen) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(*until_ - Clock::now()).count();
      late_ = rest <= 0;
      if (late_) return false;
      pollfd waiting{fd_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long long>(rest, 1 << 30)));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  const int fd_;
  const std::optional<Clock::time_point> until_;
  std::string held_, launcher_;
  bool late_ = false;
};

/// A launcher that gets SIGTERM ends its ranks on all hosts. If it does not end within five seconds, it is killed.
void end(const Child& child) {
  child.end(SIGTERM);
  for (int i = 0; i < 50; ++i) {
    siginfo_t ended{};  // WNOWAIT: the child stays a zombie, so that its process id is not reused
    if (::waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
      break;
    ::usleep(100'000);
  }
  child.end(SIGKILL);
}

}  // namespace

MeasureRun follow_measurement(const std::vector<std::string>& command,
                              const std::function<void(int, int, const std::string&)>& on_point, double limit_s) {
  MeasureRun run;
  HoldInterrupt hold;
  const bool limited = limit_s > 0;
  std::optional<Clock::time_point> until;
  if (limited)
    until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s));
  const Child child = start(command, limited);
  if (child.pid < 0) {
    run.error = std::string("can't start a process: ") + std::strerror(errno);
    return run;
  }
  Lines out(child.out, until, command[0]), err(child.err, until);
  std::string line;
  while (out.next(&line)) {
    std::istringstream words(line);
    std::string event;
    words >> event;
    const auto rest = [&] { return line.size() > event.size() ? line.substr(event.size() + 1) : std::string(); };
    if (event == "config")
      run.configuration = rest();
    else if (event == "hosts")
      run.two_hosts = rest() == "different";
    else if (event == "preload")
      run.preloaded = rest() == "yes";
    else if (event == "gpu")
      run.stand_in = rest().front() == '1', run.gpu = rest().substr(2);
    else if (event == "gpu-problem")
      run.gpu_problem = rest();
    else if (event == "plan")
      words >> run.points >> run.known;
    else if (event == "error" && run.error.empty())
      run.error = rest();
    else if (event == "end")
      run.complete = static_cast<bool>(words >> run.measured >> run.left_out >> run.seconds);
    else if (event == "at") {
      int number = 0;
      words >> number;
      const std::string text = rest();
      on_point(number, run.points, text.substr(text.find(' ') + 1));
    } else
      run.more.emplace_back(event, rest());
  }
  // Read after stdout: the launcher writes little to stderr, far less than a pipe holds.
  while (err.next(&line))
    if (run.said.empty() && line.find_first_not_of(" \t=") != std::string::npos) run.said = line;
  run.late = out.late() || err.late();
  if (limited && (run.late || interrupt_seen)) end(child);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  run.interrupted = interrupt_seen != 0;
  if (!run.complete && run.error.empty()) run.error = run.said.empty() ? "the measuring program ended early" : run.said;
  return run;
}

void end_if_interrupted(const MeasureRun& run) {
  if (!run.interrupted) return;
  std::fprintf(stderr, "bestride: interrupted; 'bestride calibrate' with the same arguments goes on from here\n");
  finish(130);
}

void end_if_incomplete(const MeasureRun& run, const std::string& what, const std::string& launcher) {
  end_if_interrupted(run);
  if (!run.complete)
    fail(what + " failed: " + run.error + "; is '" + launcher + "' the launcher of MPICH?", exit_attention);
}

}  // namespace bestride::inline cli
