// SPDX-License-Identifier: Apache-2.0
#pragma once
// FirstCall: runs a piece of work once, in the first thread that needs it, while other threads wait. It replaces
// std::call_once, which needs the C++ runtime and lacks three properties:
// - The thread that runs the work may call again and is let through. Opening the backend calls the MPI library, which
//   calls MPI functions through our own stubs.
// - The work may fail and is then tried again later (no MPI library is mapped yet).
// - Waiting is bounded. Otherwise a waiting thread whose constructor holds a loader lock would cause a deadlock.
#include <atomic>

namespace bestride::preload {

class FirstCall {
 public:
  /// True once `work` has returned true in this process. `work` runs in the first thread that calls done(). False if
  /// `work` returned false, if this thread is already running it, or after five seconds of waiting for the thread that
  /// runs it. After one such timeout no thread waits again.
  bool done(bool (*work)()) noexcept { return state_.load(std::memory_order_acquire) == finished || run(work); }

 private:
  static constexpr int untouched = 0;
  static constexpr int finished = -1;  // any other value: the id of the thread that runs the work

  bool run(bool (*work)()) noexcept;
  bool wait_for(int inside) noexcept;

  std::atomic<int> state_{untouched};
  std::atomic<bool> timed_out_{false};
};

}  // namespace bestride::preload
