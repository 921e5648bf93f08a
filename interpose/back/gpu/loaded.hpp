// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether anything was loaded into the process since MPI_Init: two loads, for play.hpp.
//
// The dynamic linker appends what it loads to the list that debuggers read (link.h). So nothing was loaded as long as nothing follows the
// object that was the last one when it was looked at. That object must never be unloaded: it is this one, or the last of those that MPI_Init
// loaded, which is held. Never one that the application may have loaded, whose dlclose() would then do nothing: then the answer is always yes.
// An object that comes and goes again leaves the answer at no; what comes and stays makes it yes for good.
// Alternatives that lost: the linker's own count of objects (dl_iterate_phdr), 30 to 50 ns; a dlopen() of our own in front of libc's, which
// every process with the preload would go through.
#include <link.h>

#include <atomic>

namespace bestride {

/// Never null. Until there is an object to look behind, one that another follows.
extern constinit std::atomic<const link_map*> last_object;

/// Thread-safe. What happened before in another thread and is known to this one is seen.
inline bool loaded_since() noexcept { return __atomic_load_n(&last_object.load(std::memory_order_acquire)->l_next, __ATOMIC_RELAXED) != nullptr; }

/// Stands around a call that loads objects of its own.
class LoadsOfOneCall {
 public:
  LoadsOfOneCall() noexcept;
  /// After the call: the object behind which further ones will appear, never to be unloaded; nullptr if there is none such.
  const link_map* hold_last() const noexcept;

 private:
  const link_map* before_;  ///< the last one, only to be compared with
};

}  // namespace bestride
