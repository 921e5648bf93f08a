// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that the MPI library, or a tool between Bestride and the library, makes by PMPI_ names inside a call of the
// application, perhaps on some ranks only. PMPI_ names are intercepted, so such a call reaches an entry a second time.
// It belongs to the first call: members do not agree on anything in it, and nothing is counted.
//
// A call by an MPI_ name is always the application's: it comes from one of its callbacks, or an error handler has left
// the first call by longjmp().
#include <utility>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

/// True while this thread is in a library function that was called by inside().
extern thread_local constinit bool in_library_call __attribute__((tls_model("initial-exec")));

class InLibraryCall {
 public:
  InLibraryCall() noexcept : before_(std::exchange(in_library_call, true)) {}
  ~InLibraryCall() { in_library_call = before_; }
  InLibraryCall(const InLibraryCall&) = delete;
  InLibraryCall& operator=(const InLibraryCall&) = delete;

 private:
  const bool before_;
};

/// Makes a library's call in which entries of PMPI_ names are nested.
template <class... Parameters, class... Arguments>
int inside(int (*function)(Parameters...), Arguments... arguments) {
  const InLibraryCall call;
  return function(arguments...);
}

/// True of the table of an entry with a PMPI_ name. (With sanitizers, compilers do not compare addresses at compile
/// time.)
template <Calls& via>
inline constexpr bool has_pmpi_name = false;
template <>
inline constexpr bool has_pmpi_name<real> = true;

/// True if an entry that forwards to `via` was called in such a call.
template <Calls& via>
bool nested() noexcept {
  if constexpr (has_pmpi_name<via>)
    return in_library_call;
  else
    return false;
}

/// The object that this thread frees, in a call that may run callbacks of the application. Those may free other objects
/// by PMPI_ names, so a nested call is recognized by the handle. `current`: a variable of the thread, for each kind of
/// object.
template <class Handle>
class ObjectBeingFreed {
 public:
  ObjectBeingFreed(const Handle*& current, Handle handle) noexcept
      : current_(current), handle_(handle), before_(std::exchange(current, &handle_)) {}
  ~ObjectBeingFreed() { current_ = before_; }
  ObjectBeingFreed(const ObjectBeingFreed&) = delete;
  ObjectBeingFreed& operator=(const ObjectBeingFreed&) = delete;

 private:
  const Handle*& current_;
  const Handle handle_;
  const Handle* const before_;
};
template <Calls& via, class Handle>
bool nested_free(const Handle* current, const Handle* handle) noexcept {
  return has_pmpi_name<via> && current && handle && *current == *handle;
}

}  // namespace bestride::inline interpose
