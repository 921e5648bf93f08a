// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/hierarchical/pending.hpp"

namespace bestride {
namespace {

struct Worker {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> end{false};
  pthread_t thread{};
  bool started = false, refused = false;
};
Worker& worker() noexcept {
  static Worker* const one = new Worker;  // never destroyed: the thread may outlive static objects
  return *one;
}

void* work(void*) {
  Worker& self = worker();
  while (!self.end.load(std::memory_order_acquire)) {
    if (any_collective_pending()) {
      progress_collectives();
      sched_yield();
      continue;
    }
    std::unique_lock lock(self.mutex);
    self.wake.wait(lock, [&] { return self.end.load(std::memory_order_acquire) || any_collective_pending(); });
  }
  return nullptr;
}

}  // namespace

bool wants_progress_thread() noexcept {
  static const bool wanted = Settings::get().text("BESTRIDE_PROGRESS") == "thread";
  return wanted;
}

void wake_progress_thread() noexcept {
  if (!wants_progress_thread()) return;
  Worker& self = worker();
  const std::lock_guard lock(self.mutex);
  if (!self.started && !self.refused) {
    int level = MPI_THREAD_SINGLE;
    real.Query_thread(&level);
    // The application's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self.started = level == MPI_THREAD_MULTIPLE && pthread_create(&self.thread, nullptr, &work, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    self.refused = !self.started;
    if (self.refused)
      say_once("progress", "BESTRIDE_PROGRESS=thread: %s; collectives are carried on from MPI calls instead",
               level == MPI_THREAD_MULTIPLE ? "the thread could not be started" : "the MPI library does not grant MPI_THREAD_MULTIPLE");
  }
  self.wake.notify_one();
}

void end_progress_thread() noexcept {
  Worker& self = worker();
  {
    const std::lock_guard lock(self.mutex);
    if (!self.started) return;
    self.end.store(true, std::memory_order_release);
    self.wake.notify_one();
  }
  pthread_join(self.thread, nullptr);
}

}  // namespace bestride
