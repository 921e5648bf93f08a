// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a library was loaded into the process since MPI_Init. Costs two loads; used by detection.hpp.
//
// The dynamic linker appends each loaded object to the list that debuggers read (link.h). So nothing was loaded as long
// as the object that was last at the previous look has no successor. That object must never be unloaded: it is either
// this object, or the last one that MPI_Init loaded, on which a reference is held. It is never an object that the
// application may have loaded, because the application's dlclose() would then have no effect; in that case the answer
// is always yes. An object that is loaded and unloaded again leaves the answer at no. An object that stays loaded makes
// it yes permanently.
// Alternatives considered: the linker's own count of objects (dl_iterate_phdr), which costs 30 to 50 ns; and a dlopen()
// of our own in front of libc's, which every process with the preload would go through.
#include <link.h>

#include <atomic>

namespace bestride::inline interpose {

/// The object whose successor is tested. Never null. Until such an object is known, it is an entry that has a
/// successor.
extern constinit std::atomic<const link_map*> last_link_map;

/// Thread-safe. A load is seen if it happened before this call, also in another thread.
inline bool library_loaded_since_init() noexcept {
  return __atomic_load_n(&last_link_map.load(std::memory_order_acquire)->l_next, __ATOMIC_RELAXED) != nullptr;
}

/// A scope around a call that loads libraries of its own (MPI_Init).
class LibraryLoadScope {
 public:
  LibraryLoadScope() noexcept;
  /// Call after that call. Returns the object after which later objects will appear; it is never unloaded. nullptr if
  /// there is no such object.
  const link_map* hold_last_object() const noexcept;

 private:
  const link_map* before_;  ///< the last object at construction; only compared, never dereferenced
};

}  // namespace bestride::inline interpose
