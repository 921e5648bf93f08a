// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "faults.hpp"

namespace fault_lab {
namespace {

constexpr long period_ns = 100'000'000;  // the kernel's default for CPU quotas

timespec idle_part{};

/// Keeps the thread idle for its part of the period.
void idle(int) {
  const int error = errno;
  timespec left = idle_part;
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  errno = error;
}

/// Without a control group: a timer interrupts this thread once a period.
void limit_own_cpu(int percent) {
  idle_part.tv_nsec = period_ns / 100 * (100 - percent);
  struct sigaction action {};
  action.sa_handler = idle;
  action.sa_flags = SA_RESTART;
  const int number = SIGRTMAX - 1;
  sigaction(number, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = number;
  event._sigev_un._tid = pid_t(syscall(SYS_gettid));
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  const itimerspec every{{0, period_ns}, {0, 1}};
  timer_settime(timer, 0, &every, nullptr);
}

void share_core_with_hog(Job& job) {
  const int cpu = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  job.companion.keep_busy(cpu);
}

}  // namespace

void slow_down(Job& job) {
  if (entry_of(job.plan.kind).verdict != Class::slow || !job.trigger(job.plan.kind)) return;
  switch (job.plan.kind) {
    case Kind::slow_5: job.slowdown = 0.05; break;
    case Kind::slow_20: job.slowdown = 0.2; break;
    case Kind::slow_100: job.slowdown = 1; break;
    case Kind::cpu_quota:
      if (job.options.quota_timer || !job.companion.limit_cpu(job.options.quota)) limit_own_cpu(job.options.quota);
      break;
    case Kind::cpu_hog: share_core_with_hog(job); break;
    default: break;
  }
}

}  // namespace fault_lab
