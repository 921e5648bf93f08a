// SPDX-License-Identifier: Apache-2.0
#pragma once
// Completion: the work to do when a request completes (unpack, release a buffer), and for a persistent request also
// when it starts (pack). Stored in Runtime::requests under the request's handle.
#include <mpi.h>

namespace bestride::inline interpose {

/// An error of Bestride's own with which a request completes; MPI_SUCCESS: none.
struct CompletionError {
  int error = MPI_SUCCESS;
  MPI_Comm comm = MPI_COMM_NULL;  ///< its error handler gets the error
};

struct Completion {
  MPI_Request request = MPI_REQUEST_NULL;
  Completion* chain = nullptr;
  int index = 0;
  bool persistent = false;
  /// A persistent request that the application uses as a nonblocking one: freed when it completes. It may still be
  /// queued (interpose/device/deferred_sends.hpp), and it stays inactive if it failed.
  bool emulates_nonblocking = false;
  /// Started and not completed yet. A persistent request that is not pending is inactive, or complete but not yet
  /// waited for.
  bool pending = true;

  virtual ~Completion() = default;
  /// Called before a persistent request is started: fills the buffers.
  virtual void fill() noexcept = 0;
  /// Called after a persistent request was started.
  virtual void has_started() noexcept {}
  /// Called when the request has completed. `good`: without an error; otherwise no data may be delivered. `status` may
  /// be null unless wants_status() and good.
  virtual void complete(bool good, const MPI_Status* status) noexcept = 0;
  /// True if complete() reads the status, or has to know which request of a multiple completion an error belongs to.
  virtual bool wants_status() const noexcept = 0;
  /// Call after complete(): the exact error, if the library knows only its error class.
  virtual CompletionError fault() const noexcept { return {}; }
  /// True if this rank has no work left before the library can complete the request; poll() makes progress on that
  /// work.
  virtual bool ended() const noexcept { return true; }
  virtual void poll() noexcept {}
  /// True for a collective that Bestride carries out.
  virtual bool is_collective() const noexcept { return false; }
  /// Call after fill(): true if device memory could not be moved, so the MPI call must not be made. raise_error()
  /// raises and returns its error.
  virtual bool failed() const noexcept { return false; }
  virtual int raise_error() const { return MPI_ERR_OTHER; }
};

}  // namespace bestride::inline interpose
