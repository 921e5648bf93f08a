// SPDX-License-Identifier: Apache-2.0
#pragma once
// Thread cancellation by the application must not end a thread inside the library, where the thread could hold locks.
// Use this around system calls that are cancellation points, except in MPI_Init and MPI_Finalize.
#include <pthread.h>

namespace bestride {

/// Within its scope pthread_cancel() has no effect on the calling thread; a pending cancellation takes effect later.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace bestride
