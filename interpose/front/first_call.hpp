// SPDX-License-Identifier: Apache-2.0
#pragma once
// Something that is done once, by the thread that needs it first, while others wait: std::call_once without its runtime, and with
// three answers that one can't give. The thread that is inside may come again and is let through (opening the back calls the MPI
// library, which calls MPI functions through our own stubs). It may end undone, to be tried again (no MPI library is mapped yet).
// And waiting is bounded: a loader lock held by a waiting thread's constructor would otherwise be a deadlock.
#include <atomic>

namespace bestride::front {

class FirstCall {
 public:
  /// True once `work` has returned true in this process. `work` runs in the first thread to get here.
  /// False if it ended undone, if this thread is inside it, or after five seconds of waiting for the thread that is; after one
  /// such wait nobody waits any more.
  bool done(bool (*work)()) noexcept { return state_.load(std::memory_order_acquire) == finished || run(work); }

 private:
  static constexpr int untouched = 0;
  static constexpr int finished = -1;  // any other value: the id of the thread that is inside

  bool run(bool (*work)()) noexcept;
  bool wait_for(int inside) noexcept;

  std::atomic<int> state_{untouched};
  std::atomic<bool> waited_in_vain_{false};
};

}  // namespace bestride::front
