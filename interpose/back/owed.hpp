// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owed: what has to be done when a request completes (unpack, give a buffer back), and for a persistent request also when it
// starts (pack). Hangs in Runtime::in_flight under the request's handle.
#include <mpi.h>

#include "interpose/back/calls.hpp"
#include "interpose/back/gpu/posted.hpp"
#include "interpose/back/sides.hpp"
#include "interpose/back/tally.hpp"

namespace bestride {

/// An error of ours with which a request completes; MPI_SUCCESS: none.
struct Fault {
  int error = MPI_SUCCESS;
  MPI_Comm comm = MPI_COMM_NULL;  ///< whose error handler gets it
};

struct Owed {
  MPI_Request request = MPI_REQUEST_NULL;
  Owed* chain = nullptr;
  int index = 0;
  bool persistent = false;
  /// A persistent request of ours that the application takes for a nonblocking one: freed when it completes. May be queued still
  /// (gpu/posted.hpp), and is inactive for good if it was refused.
  bool disguised = false;
  /// Started and not settled yet. A persistent request that is not pending is inactive, or complete but not yet waited for.
  bool pending = true;

  virtual ~Owed() = default;
  /// A persistent request is about to be started: fill the buffers.
  virtual void fill() noexcept = 0;
  /// A persistent request has been started.
  virtual void has_started() noexcept {}
  /// The request has completed; `good`: without an error, else nothing may be delivered. `status` may be null unless
  /// wants_status() and good.
  virtual void settle(bool good, const MPI_Status* status) noexcept = 0;
  /// settle() reads the status, or has to know whose the error of a call for many is.
  virtual bool wants_status() const noexcept = 0;
  /// After settle(): what the library knows only as an error of some kind.
  virtual Fault fault() const noexcept { return {}; }
  /// After fill(): device memory could not be moved, so the call must not be made. raise() gives its error.
  virtual bool refused() const noexcept { return false; }
  virtual int raise() const noexcept { return MPI_ERR_OTHER; }
};

/// A send, a receive, or both.
struct OwedMessage final : Owed {
  Outgoing out;
  Incoming in;
  bool fills_in = false;  ///< one buffer for both directions: `in` is packed before the call
  /// The status does not say how much arrives: `in` is packed before the call and unpacked whole, so that what does not arrive stays.
  bool whole = false;

  void fill() noexcept override {
    out.fill();
    if (fills_in) in.fill();
  }
  void settle(bool good, const MPI_Status* status) noexcept override {
    if (good && whole)
      in.settle_whole();
    else if (good && status)
      in.settle(*status);
    if (!persistent) {
      out.release();
      in.release();
    }
  }
  bool wants_status() const noexcept override { return !whole && in.wants_status(); }
  bool refused() const noexcept override { return out.refused() || in.refused(); }
  int raise() const noexcept override { return out.refused() ? out.raise() : in.raise(); }
};

/// nullptr if there is no memory, which is said: the call is then to be forwarded untouched.
OwedMessage* new_owed_message() noexcept;

/// The call that made `request` has returned with success: hangs `owed` on it, or settles it at once if the request shares its
/// handle with another and so is complete already. Takes ownership.
void hang(Owed* owed, MPI_Request request) noexcept;

/// After a completion call, for an entry that was taken out before it. `completed`: the library is done with the request, or with
/// this start of a persistent one; if not, the entry is put back. `good` and `status`: as for settle(). `request`: the application's
/// handle, which is freed if it is disguised. Returns the error of ours that the call has to give.
Fault finish(Owed* owed, bool completed, bool good, const MPI_Status* status, MPI_Request* request) noexcept;
/// The library keeps the request's handle when it is complete.
inline bool keeps_handle(const Owed& owed) noexcept { return owed.persistent || owed.disguised; }
/// Before a completion call, for entries that were taken out for it (a list by `chain`): what is disguised has been started by then.
inline void started(const Owed* owed) noexcept {
  for (; owed; owed = owed->chain)
    if (owed->disguised) [[unlikely]] return start_posted();
}
/// Of such a list: a disguised request that was refused, so can't complete, or nullptr.
inline Owed* refused_among(Owed* owed) noexcept {
  for (; owed; owed = owed->chain)
    if (owed->disguised && owed->refused()) [[unlikely]] return owed;
  return nullptr;
}
/// Ends such a request, which is no longer in a list; returns its error. `status` may be MPI_STATUS_IGNORE.
int finish_refused(Owed* owed, MPI_Request* request, MPI_Status* status) noexcept;
/// What hung on a request that is gone: forgets it.
void discard(Owed* owed) noexcept;

/// The application frees an active request on which something is owed: we keep the request until it completes.
void adopt_orphan(Owed* owed) noexcept;
/// Tests the orphans; called from completion calls while there are any.
void progress_orphans() noexcept;
/// At MPI_Finalize.
void finish_orphans() noexcept;

}  // namespace bestride
