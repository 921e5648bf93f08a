// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/owed.hpp"

#include <chrono>
#include <new>

#include "base/message.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/gpu/raise.hpp"

namespace bestride {
namespace {

/// Requests the application has freed while something was owed. They are ours now.
std::mutex orphans_mutex;
Owed* orphans = nullptr;
std::atomic<int> orphan_count{0};

/// True if it is finished and gone.
bool try_orphan(Owed* owed) noexcept {
  int done = 0;
  MPI_Status status;
  const int error = real.Test(&owed->request, &done, &status);
  if (!done && error == MPI_SUCCESS) return false;
  owed->settle(error == MPI_SUCCESS, &status);
  if (const Fault fault = owed->fault(); fault.error != MPI_SUCCESS) raise(fault.comm, fault.error);
  if (keeps_handle(*owed) && owed->request != MPI_REQUEST_NULL) real.Request_free(&owed->request);
  discard(owed);
  return true;
}

}  // namespace

OwedMessage* new_owed_message() noexcept {
  auto* owed = fail_here(FailPoint::owed) ? nullptr : new (std::nothrow) OwedMessage;
  if (!owed) say_once("owed", "no memory to remember what a request owes; such calls are left to the MPI library");
  return owed;
}

void discard(Owed* owed) noexcept {
  runtime().in_flight.settled();
  delete owed;
}

void hang(Owed* owed, MPI_Request request) noexcept {
  owed->request = request;
  auto& in_flight = runtime().in_flight;
  if (in_flight.insert(owed)) return;
  // Another entry hangs on this handle. Either the library answers with one shared handle what is complete from the start ...
  int complete = 0;
  MPI_Status status;
  if (!owed->persistent && real.Request_get_status(request, &complete, &status) == MPI_SUCCESS && complete) {
    owed->settle(true, &status);
    delete owed;
    return;
  }
  // ... or the older request was completed in a way we did not see, and its handle is in use again.
  if (Owed* stale = in_flight.extract(request)) discard(stale);
  if (!in_flight.insert(owed)) {
    in_flight.count_one();
    in_flight.put_back(owed);
  }
}

Fault finish(Owed* owed, bool completed, bool good, const MPI_Status* status, MPI_Request* request) noexcept {
  Fault fault;
  if (completed && owed->pending) {
    owed->pending = false;
    owed->settle(good, status);
    fault = owed->fault();
  }
  if (!completed || owed->persistent) {
    runtime().in_flight.put_back(owed);
    return fault;
  }
  if (owed->disguised) next.Request_free(request);
  discard(owed);
  return fault;
}

int finish_refused(Owed* owed, MPI_Request* request, MPI_Status* status) noexcept {
  const int error = owed->raise();
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
  next.Request_free(request);
  discard(owed);
  return error;
}

void adopt_orphan(Owed* owed) noexcept {
  const std::lock_guard lock(orphans_mutex);
  owed->chain = orphans;
  orphans = owed;
  orphan_count.fetch_add(1, std::memory_order_relaxed);
}

void progress_orphans() noexcept {
  if (orphan_count.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(orphans_mutex, std::try_to_lock);
  if (!lock) return;
  for (Owed** place = &orphans; *place;) {
    Owed* owed = *place;
    Owed* following = owed->chain;
    if (try_orphan(owed)) {
      *place = following;
      orphan_count.fetch_sub(1, std::memory_order_relaxed);
    } else {
      place = &owed->chain;
    }
  }
}

void finish_orphans() noexcept {
  // Their peers are on the way to MPI_Finalize too, so what can complete does so soon. What never matches must not hold the job:
  // its buffer is left to the process's end.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(2);
  while (orphan_count.load(std::memory_order_relaxed) > 0 && Clock::now() < patience) progress_orphans();
}

}  // namespace bestride
