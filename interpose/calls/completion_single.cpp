// SPDX-License-Identifier: Apache-2.0
// Completion of one request, or of one of several: Wait, Test, Waitany, Testany, Request_get_status and its variants,
// Request_free, Cancel; and calls that wait for something else. If no request has a completion, each call costs one
// load. All other work is in separate functions (_attached), so that this path saves no registers.
#include "interpose/calls/entry.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/requests.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/mpi/nested_calls.hpp"

namespace bestride::inline interpose {
namespace {

bool nothing_attached() noexcept { return runtime().requests.empty(); }

/// Call after a call that may have completed `completion`. `request`: the application's handle of it.
CompletionError complete_single(Completion* completion, int error, bool done, MPI_Request* request,
                                const MPI_Status* status) noexcept {
  const bool completed = keeps_handle(*completion) ? done || error != MPI_SUCCESS : *request == MPI_REQUEST_NULL;
  return finish(completion, completed, error == MPI_SUCCESS, status, request);
}

/// Moves the batch. `error`: the library's. Returns the call's error.
int flush(TransferBatch& batch, const CompletionError& fault, int error) {
  if (const TransferPart* lost = batch.flush()) return raise_error(lost->staging->comm());
  return fault.error != MPI_SUCCESS ? raise_error(fault.comm, fault.error) : error;
}
int complete_one(Completion* completion, int error, bool done, MPI_Request* request, const MPI_Status* status) {
  TransferBatch batch;
  const CompletionError fault = complete_single(completion, error, done, request, status);
  return flush(batch, fault, error);
}

/// Called for the entries extracted for a completion call if an error handler has thrown: handles the completed
/// requests and puts the others back.
void after_exception(Completion* completion, MPI_Request* requests) noexcept {
  while (completion) {
    Completion* following = completion->chain;
    MPI_Request* const request = &requests[completion->index];
    finish(completion, !keeps_handle(*completion) && *request == MPI_REQUEST_NULL, false, nullptr, request);
    completion = following;
  }
}

/// Completes `failed`, one of the entries extracted for a completion call, with its error, and puts the others back.
int complete_failed(Completion* completion, Completion* failed, MPI_Request* requests, int* index, MPI_Status* status) {
  while (completion) {
    Completion* following = completion->chain;
    if (completion != failed) runtime().requests.put_back(completion);
    completion = following;
  }
  *index = failed->index;
  return finish_failed(failed, &requests[*index], status);
}

/// The library's call, whose error handler may throw.
template <class Call>
int unless_exception(Completion* completion, MPI_Request* requests, Call call) {
  try {
    return call();
  } catch (...) {
    after_exception(completion, requests);
    throw;
  }
}

template <Calls& via>
int test(MPI_Request* request, int* flag, MPI_Status* status);
template <Calls& via>
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);

template <Calls& via>
[[gnu::noinline]] int wait_attached(MPI_Request* request, MPI_Status* status);

template <Calls& via>
int wait(MPI_Request* request, MPI_Status* status) {
  if (nothing_attached() || !request) [[likely]]
    return via.Wait(request, status);
  return wait_attached<via>(request, status);
}

template <Calls& via>
int wait_attached(MPI_Request* request, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return poll_until_complete([&](int* flag) { return test<via>(request, flag, status); });
  progress_freed_requests();
  Completion* completion = runtime().requests.extract(*request);
  if (!completion) return via.Wait(request, status);
  started(completion);
  if (find_failed(completion)) [[unlikely]]
    return finish_failed(completion, request, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int error = unless_exception(completion, request, [&] { return via.Wait(request, status); });
  return complete_one(completion, error, true, request, status);
}

template <Calls& via>
[[gnu::noinline]] int test_attached(MPI_Request* request, int* flag, MPI_Status* status);

template <Calls& via>
int test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (nothing_attached() || !request || !flag) [[likely]]
    return via.Test(request, flag, status);
  return test_attached<via>(request, flag, status);
}

template <Calls& via>
int test_attached(MPI_Request* request, int* flag, MPI_Status* status) {
  progress_freed_requests();
  Completion* completion = runtime().requests.extract(*request);
  if (!completion) return via.Test(request, flag, status);
  started(completion);
  if (find_failed(completion)) [[unlikely]] {
    *flag = 1;
    return finish_failed(completion, request, status);
  }
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *flag = 0;
  const int error = unless_exception(completion, request, [&] { return via.Test(request, flag, status); });
  return complete_one(completion, error, *flag, request, status);
}

/// `index`: of the completed request, or MPI_UNDEFINED. The other entries are put back. Returns the call's error.
int complete_any(Completion* completion, int error, int index, MPI_Request* requests, const MPI_Status* status) {
  TransferBatch batch;
  CompletionError fault;
  while (completion) {
    Completion* following = completion->chain;
    if (completion->index == index)
      fault = complete_single(completion, error, true, &requests[index], status);
    else
      runtime().requests.put_back(completion);
    completion = following;
  }
  return flush(batch, fault, error);
}

template <Calls& via>
[[gnu::noinline]] int waitany_attached(int count, MPI_Request* requests, int* index, MPI_Status* status);

template <Calls& via>
int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (nothing_attached() || !requests || !index) [[likely]]
    return via.Waitany(count, requests, index, status);
  return waitany_attached<via>(count, requests, index, status);
}

template <Calls& via>
int waitany_attached(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return poll_until_complete([&](int* flag) { return testany<via>(count, requests, index, flag, status); });
  progress_freed_requests();
  Completion* completion = runtime().requests.extract_all(requests, count);
  if (!completion) return via.Waitany(count, requests, index, status);
  started(completion);
  if (Completion* failed = find_failed(completion)) [[unlikely]]
    return complete_failed(completion, failed, requests, index, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  const int error = unless_exception(completion, requests, [&] { return via.Waitany(count, requests, index, status); });
  return complete_any(completion, error, *index, requests, status);
}

template <Calls& via>
[[gnu::noinline]] int testany_attached(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);

template <Calls& via>
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (nothing_attached() || !requests || !index || !flag) [[likely]]
    return via.Testany(count, requests, index, flag, status);
  return testany_attached<via>(count, requests, index, flag, status);
}

template <Calls& via>
int testany_attached(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  progress_freed_requests();
  Completion* completion = runtime().requests.extract_all(requests, count);
  if (!completion) return via.Testany(count, requests, index, flag, status);
  started(completion);
  if (Completion* failed = find_failed(completion)) [[unlikely]] {
    *flag = 1;
    return complete_failed(completion, failed, requests, index, status);
  }
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  *flag = 0;
  const int error =
      unless_exception(completion, requests, [&] { return via.Testany(count, requests, index, flag, status); });
  return complete_any(completion, error, *flag || error != MPI_SUCCESS ? *index : MPI_UNDEFINED, requests, status);
}

/// The library reports that `request` is complete, and keeps it: runs its completion, once. Under the table's lock,
/// because two threads may query the status of one request at the same time.
void complete_kept(MPI_Request request, const MPI_Status& status) noexcept {
  Completion* done = nullptr;
  runtime().requests.with(request, [&](Completion* completion) {
    if (completion->pending) {
      completion->pending = false;
      completion->complete(true, &status);
    }
    if (!keeps_handle(*completion)) done = completion;
    return !keeps_handle(*completion);
  });
  if (done) discard(done);
}

/// Runs the completion of a request that the library reports to be complete, and keeps, without its status: the request
/// is one of several.
void complete_kept(MPI_Request request) noexcept {
  if (!runtime().requests.find(request)) return;
  int flag = 0;
  MPI_Status status;
  if (real.Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag) complete_kept(request, status);
}

template <Calls& via>
int request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (nothing_attached() || !flag) [[likely]]
    return via.Request_get_status(request, flag, status);
  start_deferred_sends();
  progress_freed_requests();
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int error = via.Request_get_status(request, flag, status);
  if (error == MPI_SUCCESS && *flag) complete_kept(request, *status);
  return error;
}

template <Calls& via>
int request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  start_deferred_sends();
  const int error = via.Request_get_status_all(count, requests, flag, statuses);
  if (!nothing_attached() && error == MPI_SUCCESS && *flag)
    for (int i = 0; i < count; ++i) complete_kept(requests[i]);
  return error;
}

template <Calls& via>
int request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  start_deferred_sends();
  const int error = via.Request_get_status_any(count, requests, index, flag, status);
  if (!nothing_attached() && error == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) complete_kept(requests[*index]);
  return error;
}

template <Calls& via>
int request_get_status_some(int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  start_deferred_sends();
  const int error = via.Request_get_status_some(count, requests, done, indices, statuses);
  if (!nothing_attached() && error == MPI_SUCCESS && *done != MPI_UNDEFINED)
    for (int i = 0; i < *done; ++i) complete_kept(requests[indices[i]]);
  return error;
}

template <Calls& via>
[[gnu::noinline]] int request_free_attached(MPI_Request* request);

template <Calls& via>
int request_free(MPI_Request* request) {
  if (nothing_attached() || !request) [[likely]]
    return via.Request_free(request);
  return request_free_attached<via>(request);
}

template <Calls& via>
int request_free_attached(MPI_Request* request) {
  Completion* completion = runtime().requests.extract(*request);
  if (!completion) return via.Request_free(request);
  started(completion);
  if (completion->is_collective() && !completion->persistent) {
    const int error = unless_exception(completion, request, [&] { return on_empty_collective(via.Request_free); });
    runtime().requests.put_back(completion);
    return error;
  }
  if (completion->pending) {
    adopt_freed_request(completion);
    *request = MPI_REQUEST_NULL;
    progress_freed_requests();
    return MPI_SUCCESS;
  }
  const int error = unless_exception(completion, request, [&] { return via.Request_free(request); });
  if (error == MPI_SUCCESS)
    discard(completion);
  else
    runtime().requests.put_back(completion);
  return error;
}

template <Calls& via>
int cancel(MPI_Request* request) {
  if (nothing_attached() || !request) [[likely]]
    return via.Cancel(request);
  bool collective = false;
  runtime().requests.with(*request, [&](const Completion* completion) {
    collective = completion->is_collective() && completion->pending;
    return false;
  });
  return collective ? on_empty_collective(via.Cancel) : via.Cancel(request);
}

// Intercepted only to make progress on collectives while waiting.
template <Calls& via>
int probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return poll_until_complete([&](int* flag) { return real.Iprobe(source, tag, comm, flag, status); });
  return via.Probe(source, tag, comm, status);
}
template <Calls& via>
int mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return poll_until_complete([&](int* flag) { return real.Improbe(source, tag, comm, flag, message, status); });
  return via.Mprobe(source, tag, comm, message, status);
}
/// If the communicator's memory is not shared, Bestride's collectives on it are completed first.
template <Calls& via>
int barrier(MPI_Comm comm) {
  const bool may_count = !nested<via>();
  if (may_count && barrier_on_one_node(comm, runtime().comms.find(comm))) return MPI_SUCCESS;
  before_library_collective(comm);
  if (CommEntry* const entry = may_count && job() ? runtime().comms.find(comm) : nullptr;
      entry && !leaves_barriers(*entry))
    count_left_collective(*entry);
  return inside(via.Barrier, comm);
}

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status), probe,
                     (source, tag, comm, status))
BESTRIDE_PLAIN_ENTRY(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status), mprobe,
                     (source, tag, comm, message, status))
BESTRIDE_PLAIN_ENTRY(Barrier, (MPI_Comm comm), barrier, (comm))
BESTRIDE_PLAIN_ENTRY(Wait, (MPI_Request * request, MPI_Status* status), wait, (request, status))
BESTRIDE_PLAIN_ENTRY(Test, (MPI_Request * request, int* flag, MPI_Status* status), test, (request, flag, status))
BESTRIDE_PLAIN_ENTRY(Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status), waitany,
                     (count, requests, index, status))
BESTRIDE_PLAIN_ENTRY(Testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status), testany,
                     (count, requests, index, flag, status))
BESTRIDE_PLAIN_ENTRY(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status), request_get_status,
                     (request, flag, status))
BESTRIDE_PLAIN_ENTRY(Request_get_status_all, (int count, const MPI_Request* requests, int* flag, MPI_Status* statuses),
                     request_get_status_all, (count, requests, flag, statuses))
BESTRIDE_PLAIN_ENTRY(Request_get_status_any,
                     (int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status),
                     request_get_status_any, (count, requests, index, flag, status))
BESTRIDE_PLAIN_ENTRY(Request_get_status_some,
                     (int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                     request_get_status_some, (count, requests, done, indices, statuses))
BESTRIDE_PLAIN_ENTRY(Request_free, (MPI_Request * request), request_free, (request))
BESTRIDE_PLAIN_ENTRY(Cancel, (MPI_Request * request), cancel, (request))
