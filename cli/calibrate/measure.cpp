// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/measure.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

#include "cli/calibrate/descendants.hpp"
#include "cli/common/command.hpp"

namespace bestride::inline cli {
namespace {

volatile std::sig_atomic_t signal_seen = 0;
constexpr int held_signals[] = {SIGINT, SIGTERM, SIGHUP};

/// This process survives these signals, and gets them only while it waits for output.
class HoldSignals {
 public:
  HoldSignals() {
    struct sigaction action {};
    action.sa_handler = [](int signal) { signal_seen = signal; };
    signal_seen = 0;
    sigset_t held;
    ::sigemptyset(&held);
    for (std::size_t i = 0; i < std::size(held_signals); ++i) {
      ::sigaddset(&held, held_signals[i]);
      ::sigaction(held_signals[i], &action, &before_[i]);
      // Under nohup, a hangup stays ignored.
      if (before_[i].sa_handler == SIG_IGN) ::sigaction(held_signals[i], &before_[i], nullptr);
    }
    ::sigprocmask(SIG_BLOCK, &held, &mask_);
  }
  ~HoldSignals() {
    for (std::size_t i = 0; i < std::size(held_signals); ++i) ::sigaction(held_signals[i], &before_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  HoldSignals(const HoldSignals&) = delete;

  /// The mask without the held signals.
  const sigset_t& mask() const noexcept { return mask_; }

 private:
  struct sigaction before_[std::size(held_signals)]{};
  sigset_t mask_;
};

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  int out = -1, err = -1;
};

/// `mask`: of the signals that the child has blocked.
Child start(const std::vector<std::string>& command, const sigset_t& mask) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return {};
  if (::pipe2(err, O_CLOEXEC) != 0) {
    ::close(out[0]), ::close(out[1]);
    return {};
  }
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::dup2(out[1], 1), ::dup2(err[1], 2);
    // Without a terminal, ssh fails where it would ask for a password. What a terminal sends goes through the parent.
    ::setsid();
    if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
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
  ::close(out[1]), ::close(err[1]);
  return {pid, out[0], err[0]};
}

/// The lines of a pipe, until its end, a deadline or a signal.
class Lines {
 public:
  Lines(int fd, const sigset_t& mask, Clock::time_point until) : fd_(fd), mask_(mask), until_(until) {}
  ~Lines() { ::close(fd_); }
  Lines(const Lines&) = delete;

  /// Reads one line without its newline; false at the end.
  bool next(std::string* line) {
    for (;;) {
      if (const std::size_t end = held_.find('\n'); end != std::string::npos) {
        line->assign(held_, 0, end);
        held_.erase(0, end + 1);
        return true;
      }
      if (!read_more()) break;
    }
    if (signal_seen || late_) return false;  // perhaps a part of a line
    *line = std::exchange(held_, "");
    return !line->empty();
  }
  void set_deadline(Clock::time_point until) noexcept { until_ = until; }
  bool late() const noexcept { return late_; }

 private:
  bool read_more() {
    for (;;) {
      if (signal_seen || !wait()) return false;
      char buffer[4096];
      const ssize_t got = ::read(fd_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      held_.append(buffer, static_cast<std::size_t>(got));
      return true;
    }
  }
  bool wait() {
    using namespace std::chrono;
    for (;;) {
      const auto rest = duration_cast<nanoseconds>(until_ - Clock::now()).count();
      late_ = rest <= 0;
      if (late_) return false;
      pollfd waiting{fd_, POLLIN, 0};
      constexpr long second = 1'000'000'000;
      const timespec longest{rest / second, rest % second};
      const int ready = ::ppoll(&waiting, 1, &longest, &mask_);
      if (ready > 0) return true;
      if (ready < 0 && (errno != EINTR || signal_seen)) return false;
    }
  }

  const int fd_;
  const sigset_t mask_;
  Clock::time_point until_;
  std::string held_;
  bool late_ = false;
};

/// A launcher that gets SIGTERM ends its ranks on all hosts. What has not ended within five seconds is killed.
void end(const Child& child) {
  ::kill(-child.pid, SIGTERM);
  for (int i = 0; i < 50; ++i) {
    siginfo_t ended{};  // WNOWAIT: the child stays a zombie, so that its process id is not reused
    if (::waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
      break;
    ::usleep(100'000);
  }
  kill_descendants();
}

}  // namespace

MeasureRun follow_measurement(const std::vector<std::string>& command, const MeasureLimits& limits,
                              const std::function<void(int, int, const std::string&)>& on_point) {
  MeasureRun run;
  const HoldSignals hold;
  adopt_orphans();
  const auto after = [begin = Clock::now()](double seconds) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const bool has_total = limits.total > 0;
  const Clock::time_point never = Clock::time_point::max(), until = has_total ? after(limits.total) : never;
  const Child child = start(command, hold.mask());
  if (child.pid < 0) {
    run.error = std::string("can't start a process: ") + std::strerror(errno);
    return run;
  }
  Lines out(child.out, hold.mask(), has_total ? until : after(limits.start)), err(child.err, hold.mask(), until);
  std::string line;
  while (out.next(&line)) {
    out.set_deadline(until);
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
  run.unstarted = out.late() && !has_total;
  const bool given_up = out.late() || signal_seen;
  if (given_up) end(child), err.set_deadline(Clock::now() + std::chrono::seconds(1));
  // Read after stdout: the launcher writes little to stderr, far less than a pipe holds.
  while (err.next(&line))
    if (run.said.empty() && line.find_first_not_of(" \t=") != std::string::npos) run.said = line;
  run.late = out.late() || err.late();
  if (!given_up && (run.late || signal_seen)) end(child);
  while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  run.interrupted = signal_seen;
  if (run.unstarted)
    run.error = "'" + command[0] + "' has not started the measuring program within " +
                std::to_string(static_cast<int>(limits.start)) +
                " s; can it reach every host that it is to use, without a password ('ssh HOST true')? --patience gives "
                "it more time";
  if (!run.complete && run.error.empty()) run.error = run.said.empty() ? "the measuring program ended early" : run.said;
  return run;
}

void end_if_interrupted(const MeasureRun& run) {
  if (run.interrupted == 0) return;
  std::fprintf(stderr, "bestride: interrupted; 'bestride calibrate' with the same arguments goes on from here\n");
  finish(128 + run.interrupted);
}

void end_if_incomplete(const MeasureRun& run, const std::string& what, const std::string& launcher) {
  end_if_interrupted(run);
  if (run.unstarted) fail(what + " failed: " + run.error, exit_attention);
  if (!run.complete)
    fail(what + " failed: " + run.error + "; is '" + launcher + "' the launcher of MPICH?", exit_attention);
}

}  // namespace bestride::inline cli
