// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/peers/locality.hpp"

namespace bestride::inline interpose {
namespace {

using Clock = std::chrono::steady_clock;
constexpr long sleep_ns = 200'000;
constexpr std::chrono::microseconds look_after{10};
/// Number of idle checks before the thread waits to be woken. While a program starts one collective after the other,
/// the thread should continue to sleep and check: waking it for each of them takes the processor from a rank and costs
/// 0.05 ms in a collective of 64 KiB (docs/decisions/progress_thread.md).
constexpr int idle_looks = 10;

enum class Mode { automatic, thread, calls };
Mode mode() noexcept {
  static const Mode one = [] {
    const std::string& text = Settings::get().text("BESTRIDE_PROGRESS");
    return text == "thread" ? Mode::thread : text == "calls" ? Mode::calls : Mode::automatic;
  }();
  return one;
}

struct Worker {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> end{false};
  std::atomic<bool> waits_for_work{false};  ///< the thread must be woken only if this is true; reset by who wakes it
  pthread_t thread{};
  bool started = false;
  bool calls_mpi = false;  ///< the thread may; written before it starts
};
Worker& worker() noexcept {
  alignas(Worker) static std::byte storage[sizeof(Worker)];
  static Worker* const one = new (storage) Worker;  // never destroyed: the thread may outlive static objects
  return *one;
}

/// True if MPI calls of the application have made progress since the last check. *seen: their count at that check.
bool calls_make_progress(unsigned* seen) noexcept {
  const unsigned now = progress_by_calls.load(std::memory_order_relaxed);
  return std::exchange(*seen, now) != now;
}

void* work(void*) {
  Worker& self = worker();
  const bool always = mode() == Mode::thread;
  unsigned seen = 0;
  int idle = idle_looks;
  while (!self.end.load(std::memory_order_acquire)) {
    idle = collectives_running.load(std::memory_order_acquire) != 0 ? 0 : idle + 1;
    if (idle > idle_looks || (idle > 0 && always)) {
      std::unique_lock lock(self.mutex);
      // Sequentially consistent, like the counting of a new collective and the check in wake_progress_thread(): either
      // this thread sees the collective, or the other thread sees that this one waits.
      self.waits_for_work.store(true);
      self.wake.wait(lock, [&] {
        return self.end.load(std::memory_order_acquire) || !self.waits_for_work.load() ||
               collectives_running.load() != 0;
      });
      self.waits_for_work.store(false, std::memory_order_relaxed);
      // Also if that collective has ended already: others may follow, each of which would have to wake this thread.
      idle = 0;
    }
    if (always) {
      progress_collectives(self.calls_mpi);
      sched_yield();
      continue;
    }
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);
    for (const Clock::time_point until = Clock::now() + look_after;
         !calls_make_progress(&seen) && collectives_running.load(std::memory_order_acquire) != 0;) {
      progress_collectives(self.calls_mpi);
      if (Clock::now() >= until) break;
    }
  }
  return nullptr;
}

bool start(Worker& self) noexcept {
  if (inject_failure(FailPoint::thread)) return false;
  // Signals of the application are delivered to its own threads, except those that an instruction of this thread
  // causes: it accesses the application's buffers, and the application may handle accesses to protected pages. A
  // blocked signal would end the process.
  sigset_t others, before;
  sigfillset(&others);
  for (const int caused : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&others, caused);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  const bool started = pthread_create(&self.thread, &attributes, &work, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

bool wants_thread_multiple() noexcept {
  const Settings& settings = Settings::get();
  if (mode() == Mode::thread) return true;
  const std::string& all_ranks = settings.text("BESTRIDE_ALL_RANKS");
  if (mode() == Mode::calls || all_ranks == "0") return false;
  // Only Hydra can tell whether all ranks take part (interpose/peers/pmi.hpp).
  if (all_ranks == "auto" && (!std::getenv("PMI_FD") || ranks_of_job() < 2)) return false;
  return !settings.text("BESTRIDE_TOPOLOGY").empty() || simulated_nodes() || !launched_on_one_host();
}

ProgressThread start_progress_thread(bool must_call_mpi) noexcept {
  if (mode() == Mode::calls) return ProgressThread::none;
  Worker& self = worker();
  const std::lock_guard lock(self.mutex);
  int level = MPI_THREAD_SINGLE;
  self.calls_mpi = real.Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE;
  const bool may_start = self.calls_mpi || !must_call_mpi;
  self.started = may_start && start(self);
  if (!self.started)
    (mode() == Mode::thread ? warn_once : log_info_once)(
        "progress", "%s; nonblocking collectives are left to the MPI library",
        may_start ? "the progress thread could not be started"
                  : "the MPI library does not grant MPI_THREAD_MULTIPLE, which the progress thread takes");
  return !self.started    ? ProgressThread::none
         : self.calls_mpi ? ProgressThread::calls_mpi
                          : ProgressThread::moves_memory;
}

void wake_progress_thread() noexcept {
  Worker& self = worker();
  if (!self.waits_for_work.load() || !self.waits_for_work.exchange(false)) return;
  const std::lock_guard lock(self.mutex);
  self.wake.notify_one();
}

void end_progress_thread() noexcept {
  Worker& self = worker();
  {
    const std::lock_guard lock(self.mutex);
    if (!std::exchange(self.started, false)) return;
    self.end.store(true, std::memory_order_release);
    self.wake.notify_one();
  }
  pthread_join(self.thread, nullptr);
}

void keep_progress_thread_out_of_mpi() noexcept {
  Worker& self = worker();
  if (!self.started || !self.calls_mpi) return;
  end_progress_thread();
  const std::lock_guard lock(self.mutex);
  self.end.store(false, std::memory_order_relaxed);
  self.calls_mpi = false;
  self.started = start(self);
}

}  // namespace bestride::inline interpose
