// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <mutex>

#include "faults.hpp"

namespace fault_lab {
namespace {

constexpr int nobodys_tag = 98;

double seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

void stop(Job& job) {
  if (job.options.fault_seconds > 0) job.companion.continue_after(job.options.fault_seconds);
  std::raise(SIGSTOP);
}

void spin(double until) {
  while (seconds() < until) {
  }
}

void sleep(double until) {
  while (seconds() < until) usleep(unsigned(std::min(until - seconds(), 0.5) * 1e6) + 1);
}

[[gnu::noinline]] void wait_for_file(double until) {
  while (seconds() < until && access("/nonexistent/fault_lab", F_OK) != 0) usleep(500000);
}

/// The FIFO has a writer, this process, so that read() neither fails nor ends. Its name is removed at once.
[[gnu::noinline]] void read_fifo() {
  char folder[] = "/tmp/fault_lab.XXXXXX", fifo[64];
  if (!mkdtemp(folder)) return;
  std::snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  const int file = mkfifo(fifo, 0600) == 0 ? open(fifo, O_RDWR | O_CLOEXEC) : -1;
  unlink(fifo);
  rmdir(folder);
  char byte = 0;
  while (file >= 0 && read(file, &byte, 1) <= 0) {
  }
}

void repeat_failing_write() {
  const int file = open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (ssize_t written = 0; file >= 0 && written <= 0; usleep(10000)) written = write(file, "checkpoint", 10);
}

/// Two descriptions of the same file exclude each other, also within a process.
[[gnu::noinline]] void lock_file_twice(bool by_fcntl) {
  FILE* const one = std::tmpfile();
  if (!one) return;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(one));
  const int other = open(path, O_RDWR | O_CLOEXEC);
  if (other < 0) return;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  for (const int file : {fileno(one), other})
    if (by_fcntl)
      fcntl(file, F_OFD_SETLKW, &whole);
    else
      flock(file, LOCK_EX);
}

/// The parent of a process that vfork() has made is in state D until that process ends. It is killed with its parent.
void wait_for_vfork() {
  if (vfork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::sleep(1000);
  }
}

[[gnu::noinline]] void poll_for_message(const Job& job) {
  for (int found = 0; !found;) MPI_Iprobe(MPI_ANY_SOURCE, nobodys_tag, job.first, &found, MPI_STATUS_IGNORE);
}

[[gnu::noinline]] void lock_twice() {
  static std::mutex mutex;
  std::thread([] { mutex.lock(); }).join();
  mutex.lock();
}

void stall(Job& job, const Plan& plan) {
  if (!stalls(entry_of(plan.kind))) return;
  if (stalls_all(entry_of(plan.kind))) {
    if (!job.now(plan.kind)) return;
    MPI_Barrier(job.first);
    job.trigger(plan);
  } else if (!job.trigger(plan)) {
    return;
  }
  const double duration = job.options.fault_seconds;
  const double until = duration > 0 ? seconds() + duration : std::numeric_limits<double>::infinity();
  switch (plan.kind) {
    case Kind::sigstop: stop(job); break;
    case Kind::spin: spin(until); break;
    case Kind::sleep: sleep(until); break;
    case Kind::stuck_read:
    case Kind::all_stuck_read: read_fifo(); break;
    case Kind::disk_full_retry: repeat_failing_write(); break;
    case Kind::mutex_deadlock:
    case Kind::all_mutex: lock_twice(); break;
    case Kind::all_file_lock: lock_file_twice(plan.variant % 2 != 0); break;
    case Kind::all_wait_for_child: job.companion.wait_for_end(); break;
    case Kind::all_wait_for_file: wait_for_file(until); break;
    case Kind::all_uninterruptible: wait_for_vfork(); break;
    case Kind::all_poll: poll_for_message(job); break;
    default: break;
  }
}

}  // namespace

void stall(Job& job) {
  stall(job, job.plan);
  stall(job, job.second_plan);
}

}  // namespace fault_lab
