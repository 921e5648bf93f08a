// SPDX-License-Identifier: Apache-2.0
#include "start_line.hpp"

#include <sched.h>
#include <time.h>

#include <atomic>

namespace {
struct Line {
  alignas(128) std::atomic<long> arrivals;
  alignas(128) std::atomic<double> start;  ///< by now()
  std::atomic<long> turn;
};
constexpr double moment = 1e-6;  ///< in which all ranks see the start: several round trips of a cache line
constexpr int turns_before_yield = 1000;

/// Not MPI_Wtime(), whose origin differs between processes with Intel MPI.
double now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
}  // namespace

StartLine::StartLine(MPI_Comm comm) : memory_(comm, sizeof(Line)) { MPI_Comm_size(comm, &ranks_); }

void StartLine::wait() noexcept {
  Line& line = *static_cast<Line*>(memory_.data());
  ++turn_;
  if (line.arrivals.fetch_add(1) + 1 == turn_ * ranks_) {
    line.start.store(now() + moment, std::memory_order_relaxed);
    line.turn.store(turn_, std::memory_order_release);
  }
  for (int i = 0; line.turn.load(std::memory_order_acquire) < turn_; ++i)
    if (i >= turns_before_yield) sched_yield();
  const double start = line.start.load(std::memory_order_relaxed);
  while (now() < start) {
  }
}
