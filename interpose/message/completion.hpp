// SPDX-License-Identifier: Apache-2.0
#pragma once
// The completions of messages, and what the calls that create, complete and free requests do with completions.
#include <mpi.h>

#include "interpose/device/deferred_sends.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/request_completion.hpp"
#include "interpose/report/tally.hpp"

namespace bestride::inline interpose {

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
