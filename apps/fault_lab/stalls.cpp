// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
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

/// The FIFO has a writer, this process, so that read() neither fails nor ends. Its name is removed at once.
void read_fifo() {
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

void lock_twice() {
  static std::mutex mutex;
  std::thread([] { mutex.lock(); }).join();
  mutex.lock();
}

void stall(Job& job, const Plan& plan) {
  if (!stalls(entry_of(plan.kind)) || !job.trigger(plan)) return;
  const double duration = job.options.fault_seconds;
  const double until = duration > 0 ? seconds() + duration : std::numeric_limits<double>::infinity();
  switch (plan.kind) {
    case Kind::sigstop: stop(job); break;
    case Kind::spin: spin(until); break;
    case Kind::sleep: sleep(until); break;
    case Kind::stuck_read: read_fifo(); break;
    case Kind::disk_full_retry: repeat_failing_write(); break;
    case Kind::mutex_deadlock: lock_twice(); break;
    default: break;
  }
}

}  // namespace

void stall(Job& job) {
  stall(job, job.plan);
  stall(job, job.second_plan);
}

}  // namespace fault_lab
