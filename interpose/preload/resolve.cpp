// SPDX-License-Identifier: Apache-2.0
// Resolves a slot at its first call. Called by the lazy thunks with every argument register of the MPI call saved.
#include <dlfcn.h>

#include <cerrno>

#include "base/message.hpp"
#include "interpose/preload/first_call.hpp"
#include "interpose/preload/library.hpp"
#include "interpose/preload/open_backend.hpp"
#include "interpose/preload/slots.hpp"
#include "interpose/preload/watch.hpp"

extern "C" void bestride_absent();  // in the generated assembly: returns 16 or 0.0

namespace bestride::preload {
namespace {

FirstCall first_call;

bool resolve_all() noexcept {
  if (!mpi_library()) return false;
  open_backend();
  return true;
}

void* absent_function(const char* name) noexcept {
  if (mpi_library()) {
    warn_once(name, "%s was called, which %s does not have: the call returns an error; use an MPI library that has it",
              name, mpi_library_path());
  } else {
    warn_once(
        "preload.no_mpi",
        "no MPI library is loaded in this process: %s was called and returns an error; link the program with MPI, "
        "or load the "
        "MPI library before the call",
        name);
  }
  return reinterpret_cast<void*>(&bestride_absent);
}

void* target_of(unsigned index) noexcept {
  const bool wrapped_before = wrapper(index) != nullptr;
  const bool resolved = first_call.done(resolve_all);
  // This call came through the slot itself. Later ones reach the lazy thunk through the wrapper.
  if (!wrapped_before)
    if (void* const entry = wrapper(index)) return entry;
  if (void* intercepted = slot_target(index)) return intercepted;
  const char* name = slot_name(index);
  void* target = next_symbol(name);
  if (!target) return absent_function(name);
  // Until the first call has completed, the backend may still intercept this slot.
  if (resolved) resolve_slot(index, target);
  return target;
}

}  // namespace
}  // namespace bestride::preload

extern "C" [[gnu::visibility("hidden")]] void* bestride_resolve(unsigned index) {
  using namespace bestride::preload;
  const int error = errno;
  void* target = hooked_target(index);
  if (!target) {
    target = target_of(index);
    dlerror();  // a failed lookup of ours must not appear as the program's own dlerror()
  }
  call_hook(index);
  errno = error;
  return target;
}
