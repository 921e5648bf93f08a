// SPDX-License-Identifier: Apache-2.0
#include "companion.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "cpu_group.hpp"

namespace fault_lab {

struct Companion::Command {
  enum What { resume, trace, drain, hog, quota, compute, drip } what;
  double seconds = 0;
  int number = 0;  ///< a CPU, or percent
};

namespace {

constexpr double drip_seconds = 0.5;
constexpr std::size_t written_at_once = 1 << 20;  // more than a pipe takes, so that write() blocks

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The rank whose companion this process is.
struct Served {
  int process;
  double deadline;

  [[noreturn]] void kill_at_limit() const {
    kill(process, SIGKILL);
    _exit(0);
  }
  /// Does not return if the deadline is earlier.
  void wait(double seconds) const {
    const double until = std::min(now() + seconds, deadline);
    for (double left = until - now(); left > 0; left = until - now()) {
      const timespec time{time_t(left), long((left - std::floor(left)) * 1e9)};
      nanosleep(&time, nullptr);
    }
    if (now() >= deadline) kill_at_limit();
  }
};

bool trace_for(const Served& rank, double seconds) {
  if (ptrace(PTRACE_SEIZE, rank.process, nullptr, nullptr) != 0) return false;
  ptrace(PTRACE_INTERRUPT, rank.process, nullptr, nullptr);
  int status = 0;
  waitpid(rank.process, &status, __WALL);
  rank.wait(seconds);
  ptrace(PTRACE_DETACH, rank.process, nullptr, nullptr);
  return true;
}

void drain_after(const Served& rank, double seconds, int sink) {
  rank.wait(seconds);
  static char buffer[1 << 16];
  for (std::size_t left = written_at_once; left > 0;) {
    const ssize_t got = read(sink, buffer, std::min(left, sizeof buffer));
    if (got == 0 || (got < 0 && errno != EINTR)) return;
    if (got > 0) left -= std::size_t(got);
  }
}

void compute_for(const Served& rank, double seconds) {
  for (const double until = now() + seconds; now() < until;)
    if (now() >= rank.deadline) rank.kill_at_limit();
}

/// The byte that ends it, 0, is written by the caller.
void drip_for(const Served& rank, double seconds, int replies) {
  const char byte = 1;
  for (const double until = now() + seconds; now() < until;) {
    rank.wait(drip_seconds);
    if (write(replies, &byte, 1) != 1) return;
  }
}

void start_hog(int cpu) {
  const int parent = getpid();
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  volatile bool always = true;
  while (always) {
  }
}

/// As pipe().
void make_pipe(int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no more file descriptors");
}

}  // namespace

Companion::Companion(double limit) {
  int commands[2], replies[2], sink[2];
  make_pipe(commands);
  make_pipe(replies);
  make_pipe(sink);
  const int rank = getpid();
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("no more processes");
  if (process_ == 0) {
    close(commands[1]), close(replies[0]), close(sink[1]);
    serve(commands[0], replies[1], sink[0], rank, limit);
  }
  close(commands[0]), close(replies[1]), close(sink[0]);
  commands_ = commands[1], replies_ = replies[0], sink_ = sink[1];
  prctl(PR_SET_PTRACER, process_, 0, 0, 0);  // fails where it is not needed
}

Companion::~Companion() {
  close(commands_), close(replies_), close(sink_);
  waitpid(process_, nullptr, 0);
}

void Companion::serve(int commands, int replies, int sink, int rank, double limit) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != rank) _exit(0);
  // The launcher waits until all copies of the output pipes are closed.
  const int null = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(null, stream);
  const int last = int(sysconf(_SC_OPEN_MAX));
  for (int other = 3; other < std::min(last, 1024); ++other)
    if (other != commands && other != replies && other != sink) close(other);
  signal(SIGINT, SIG_IGN), signal(SIGPIPE, SIG_IGN);
  const Served served{rank, now() + limit};
  CpuGroup group;
  for (;;) {
    pollfd waiting{commands, POLLIN, 0};
    const int ready = poll(&waiting, 1, int(std::min(std::max(0.0, served.deadline - now()), 1e6) * 1e3) + 1);
    if (now() >= served.deadline) {
      kill(rank, SIGKILL);
      break;
    }
    if (ready <= 0) continue;
    Command command{};
    if (read(commands, &command, sizeof command) != ssize_t(sizeof command)) break;  // the rank has ended
    char done = 1;
    switch (command.what) {
      case Command::resume:
        served.wait(command.seconds);
        kill(rank, SIGCONT);
        continue;  // without a reply
      case Command::trace: done = trace_for(served, command.seconds); break;
      case Command::drain: drain_after(served, command.seconds, sink); break;
      case Command::hog: start_hog(command.number); break;
      case Command::compute: compute_for(served, command.seconds); break;
      case Command::drip:
        drip_for(served, command.seconds, replies);
        done = 0;
        break;
      case Command::quota:
        // The group is removed after the rank has ended, so this process must outlive the rank for a moment.
        done = group.limit(rank, command.number);
        if (done) prctl(PR_SET_PDEATHSIG, 0), setsid();
        break;
    }
    if (write(replies, &done, 1) != 1) break;
  }
  group.remove();
  _exit(0);
}

void Companion::send(const Command& command) {
  if (write(commands_, &command, sizeof command) != ssize_t(sizeof command))
    throw std::runtime_error("the companion process has ended");
}

bool Companion::reply() {
  char done = 0;
  ssize_t got = 0;
  do got = read(replies_, &done, 1);
  while (got < 0 && errno == EINTR);
  if (got != 1) throw std::runtime_error("the companion process has ended");
  return done;
}

void Companion::continue_after(double seconds) { send({Command::resume, seconds}); }

void Companion::wait_for_end() const {
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Companion::compute(double seconds) {
  send({Command::compute, seconds});
  reply();
}

void Companion::slow_read(double seconds) {
  send({Command::drip, seconds});
  while (reply()) {
  }
}

bool Companion::trace(double seconds) {
  send({Command::trace, seconds});
  return reply();
}

void Companion::slow_write(double seconds) {
  const std::vector<char> data(written_at_once, 'x');
  send({Command::drain, seconds});
  for (std::size_t at = 0; at < data.size();) {
    const ssize_t written = write(sink_, data.data() + at, data.size() - at);
    if (written > 0)
      at += std::size_t(written);
    else if (errno != EINTR)
      throw std::runtime_error("the companion process has ended");
  }
  reply();
}

void Companion::keep_busy(int cpu) {
  send({Command::hog, 0, cpu});
  reply();
}

bool Companion::limit_cpu(int percent) {
  send({Command::quota, 0, percent});
  return reply();
}

}  // namespace fault_lab
