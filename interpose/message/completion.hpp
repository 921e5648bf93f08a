// SPDX-License-Identifier: Apache-2.0
#pragma once
// Completion: the work to do when a request completes (unpack, release a buffer), and for a persistent request also
// when it starts (pack). Stored in Runtime::requests under the request's handle.
#include <mpi.h>

#include "interpose/device/deferred_sends.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/report/tally.hpp"

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

/// The completion of a send, a receive, or both.
struct MessageCompletion final : Completion {
  SendEndpoint out;
  ReceiveEndpoint in;
  /// The status does not contain the number of received bytes. `in` is then packed before the call and unpacked as a
  /// whole, so that bytes that did not arrive keep their values.
  bool whole = false;

  void fill() noexcept override { out.fill(); }
  void complete(bool good, const MPI_Status* status) noexcept override {
    if (good && whole)
      in.complete_whole();
    else if (good && status)
      in.complete(*status);
    if (!persistent) {
      out.release();
      in.release();
    }
  }
  bool wants_status() const noexcept override { return !whole && in.wants_status(); }
  bool failed() const noexcept override { return out.failed() || in.failed(); }
  int raise_error() const override { return out.failed() ? out.raise_error() : in.raise_error(); }
};

/// A new completion; nullptr if there is no memory, which is reported: forward the call unchanged then.
MessageCompletion* new_message_completion() noexcept;

/// Call after the call that made `request` has succeeded: attaches `completion` to the request. A request that shares
/// its handle with another one is already complete; its completion runs immediately. Takes ownership.
void attach(Completion* completion, MPI_Request request) noexcept;

/// Call after a completion call, for an entry that was extracted before it. `completed`: the library is done with the
/// request, or with this start of a persistent one; if false, the entry is put back. `good` and `status`: as for
/// complete(). `request`: the application's handle, which is freed if the entry is emulates_nonblocking. Returns the
/// error of Bestride's own that the call has to raise.
CompletionError finish(Completion* completion, bool completed, bool good, const MPI_Status* status,
                       MPI_Request* request) noexcept;
/// The library keeps the request's handle after completion.
inline bool keeps_handle(const Completion& completion) noexcept {
  return completion.persistent || completion.emulates_nonblocking;
}
/// Call before a completion call, with the entries extracted for it (a list linked by `chain`): starts the deferred
/// sends if an entry may be one of them.
inline void started(const Completion* completion) noexcept {
  for (; completion; completion = completion->chain)
    if (completion->emulates_nonblocking) [[unlikely]]
      return start_deferred_sends();
}
/// Returns an emulates_nonblocking request of a list linked by `chain` that failed and so can't complete; nullptr if
/// there is none.
inline Completion* find_failed(Completion* completion) noexcept {
  for (; completion; completion = completion->chain)
    if (completion->emulates_nonblocking && completion->failed()) [[unlikely]]
      return completion;
  return nullptr;
}
/// Completes such a request, which must not be in a list any more; returns its error. `status` may be
/// MPI_STATUS_IGNORE.
int finish_failed(Completion* completion, MPI_Request* request, MPI_Status* status);
/// Deletes the completion of a request that no longer exists.
void discard(Completion* completion) noexcept;

/// The application frees an active request that has a completion: takes ownership of the request until it completes.
void adopt_freed_request(Completion* completion) noexcept;
/// Tests the freed requests; completion calls call this while there are any.
void progress_freed_requests();
/// Call in MPI_Finalize and MPI_Comm_disconnect.
void finish_freed_requests();

}  // namespace bestride::inline interpose
