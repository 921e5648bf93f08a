// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine below the message: packs and unpacks the fragments of messages in place of the MPI library.
//
// MPICH over UCX registers six functions with UCX for each committed type with gaps (ucp_dt_create_generic). UCX asks
// them to pack or unpack so many bytes from such an offset, for each fragment of a message, on both sides at the same
// time. Here the library's import of ucp_dt_create_generic is replaced, so that UCX asks Bestride's kernels instead.
// The message stays the library's: its type, count, matching, status, errors and protocol. So a rank without Bestride
// on the other side makes no difference, and nothing has to be agreed on.
//
// The library's own functions do the work for types that are not decoded, for device memory, and if there is no memory.
// Alternative considered: a packing buffer in place of the user's (message/endpoint.hpp). There the receiver waits
// until the sender has packed the whole message, and both need memory for it.
#include <cstdint>

namespace bestride::inline interpose {

/// Replaces the import, before or after MPI_Init, from one thread. Lasts until the process ends; later calls return the
/// same. nullptr: it is replaced. Otherwise nothing has changed, and the text says why, e.g. "it does not use UCX".
const char* replace_engine() noexcept;

/// A call that commits one type: what the library registers in this thread as long as this exists. An error handler of
/// the program may leave the call by longjmp, so that this is not destroyed; what the next call finds is right then,
/// too.
class Registration {
 public:
  Registration() noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  /// The context with which the library has registered the type (objects/served_types.hpp). nullptr: it has registered
  /// none, or several, so it is not known which of them is the one committed.
  void* context() const noexcept;

  /// What the thread has registered in the innermost commit. For engine.cpp only.
  struct Commit {
    std::uint64_t number = 0;  ///< of the call, in this thread; 0: none
    void* context = nullptr;   ///< if one was registered
    int registered = 0;
  };

 private:
  const Commit outer_;
  const std::uint64_t number_;
};

}  // namespace bestride::inline interpose
