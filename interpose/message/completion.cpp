// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/completion.hpp"

#include <chrono>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {
namespace {

/// Requests with a completion that the application has freed while they were active. Bestride owns them now.
std::mutex orphans_mutex;
Completion* freed_requests = nullptr;
std::atomic<int> orphan_count{0};

/// Returns true if the request is complete and its entry deleted; *fault is then its error. The library raises its own
/// errors itself.
bool test_freed_request(Completion* completion, CompletionError* fault) {
  int done = 0;
  MPI_Status status;
  const int error = real.Test(&completion->request, &done, &status);
  if (!done && error == MPI_SUCCESS) return false;
  completion->complete(error == MPI_SUCCESS, &status);
  *fault = completion->fault();
  if (keeps_handle(*completion) && completion->request != MPI_REQUEST_NULL) real.Request_free(&completion->request);
  discard(completion);
  return true;
}

/// Takes all freed requests out of the list: an error handler may throw, and the lock must not be held then. nullptr
/// also if another thread holds the lock.
Completion* take_orphans() noexcept {
  const std::unique_lock lock(orphans_mutex, std::try_to_lock);
  return lock ? std::exchange(freed_requests, nullptr) : nullptr;
}
void put_back_freed_requests(Completion* list) noexcept {
  if (!list) return;
  const std::lock_guard lock(orphans_mutex);
  Completion* last = list;
  while (last->chain) last = last->chain;
  last->chain = std::exchange(freed_requests, list);
}

}  // namespace

MessageCompletion* new_message_completion() noexcept {
  auto* completion = inject_failure(FailPoint::completion) ? nullptr : new (std::nothrow) MessageCompletion;
  if (!completion) warn_once("completion", "no memory for a completion record; such calls are left to the MPI library");
  return completion;
}

void discard(Completion* completion) noexcept {
  runtime().requests.count_removed();
  delete completion;
}

void attach(Completion* completion, MPI_Request request) noexcept {
  completion->request = request;
  auto& requests = runtime().requests;
  if (requests.insert(completion)) return;
  // Another entry has this handle. Either the library returned one shared handle for requests that are complete from
  // the start ...
  int complete = 0;
  MPI_Status status;
  if (!completion->persistent && real.Request_get_status(request, &complete, &status) == MPI_SUCCESS && complete) {
    completion->complete(true, &status);
    delete completion;
    return;
  }
  // ... or the older request was completed in a way that was not intercepted, and its handle was reused.
  if (Completion* stale = requests.extract(request)) discard(stale);
  if (!requests.insert(completion)) {
    requests.count_one();
    requests.put_back(completion);
  }
}

CompletionError finish(Completion* completion, bool completed, bool good, const MPI_Status* status,
                       MPI_Request* request) noexcept {
  CompletionError fault;
  if (completed && completion->pending) {
    completion->pending = false;
    completion->complete(good, status);
    fault = completion->fault();
  }
  if (!completed || completion->persistent) {
    runtime().requests.put_back(completion);
    return fault;
  }
  if (completion->emulates_nonblocking) next.Request_free(request);
  discard(completion);
  return fault;
}

int finish_failed(Completion* completion, MPI_Request* request, MPI_Status* status) {
  const int error = completion->raise_error();
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
  next.Request_free(request);
  discard(completion);
  return error;
}

void adopt_freed_request(Completion* completion) noexcept {
  const std::lock_guard lock(orphans_mutex);
  completion->chain = freed_requests;
  freed_requests = completion;
  orphan_count.fetch_add(1, std::memory_order_relaxed);
}

void progress_freed_requests() {
  if (orphan_count.load(std::memory_order_relaxed) == 0) return;
  struct Left {
    Completion* list;
    ~Left() { put_back_freed_requests(list); }
  } left{take_orphans()};
  CompletionError first;
  for (Completion** link = &left.list; *link;) {
    Completion* completion = *link;
    Completion* following = completion->chain;
    CompletionError fault;
    if (test_freed_request(completion, &fault)) {
      *link = following;
      orphan_count.fetch_sub(1, std::memory_order_relaxed);
      if (first.error == MPI_SUCCESS) first = fault;
    } else {
      link = &completion->chain;
    }
  }
  put_back_freed_requests(std::exchange(left.list, nullptr));
  if (first.error != MPI_SUCCESS) raise_error(first.comm, first.error);
}

void finish_freed_requests() {
  // The peers are about to call MPI_Finalize, too, so requests that can complete do so soon. A request that never
  // matches must not block the job: its buffer is left allocated until the process exits.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(2);
  while (orphan_count.load(std::memory_order_relaxed) > 0 && Clock::now() < patience) progress_freed_requests();
}

}  // namespace bestride::inline interpose
