// SPDX-License-Identifier: Apache-2.0
// Completion of one request, or one of several: Wait, Test, Waitany, Testany, Request_get_status and its kin, Request_free; and calls that
// wait for something else.
// While nothing is owed anywhere, each costs one load.
#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/owed.hpp"

namespace bestride {
namespace {

bool nothing_owed() noexcept { return runtime().in_flight.empty(); }

/// After a call that may have completed `owed`, whose request the application's handle is or was.
Fault finish_one(Owed* owed, int error, bool done, MPI_Request* request, const MPI_Status* status) noexcept {
  const bool completed = keeps_handle(*owed) ? done || error != MPI_SUCCESS : *request == MPI_REQUEST_NULL;
  return finish(owed, completed, error == MPI_SUCCESS, status, request);
}

/// What the GPU moves is brought where it belongs. `error`: the library's. Returns the call's error.
int conclude(Together& together, const Fault& fault, int error) noexcept {
  if (const Part* lost = together.conclude()) return raise(lost->staging->comm());
  return fault.error != MPI_SUCCESS ? raise(fault.comm, fault.error) : error;
}
int conclude_one(Owed* owed, int error, bool done, MPI_Request* request, const MPI_Status* status) noexcept {
  Together together;
  const Fault fault = finish_one(owed, error, done, request, status);
  return conclude(together, fault, error);
}

/// A refused request of `owed`, what was taken out for a completion call, is completed with its error, and the others go back.
int complete_refused(Owed* owed, Owed* refused, MPI_Request* requests, int* index, MPI_Status* status) noexcept {
  while (owed) {
    Owed* following = owed->chain;
    if (owed != refused) runtime().in_flight.put_back(owed);
    owed = following;
  }
  *index = refused->index;
  return finish_refused(refused, &requests[*index], status);
}

template <Calls& via>
int test(MPI_Request* request, int* flag, MPI_Status* status);
template <Calls& via>
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status);

template <Calls& via>
int wait(MPI_Request* request, MPI_Status* status) {
  if (nothing_owed() || !request) [[likely]] return via.Wait(request, status);
  if (any_collective_pending()) [[unlikely]] return test_in_turns([&](int* flag) { return test<via>(request, flag, status); });
  progress_orphans();
  Owed* owed = runtime().in_flight.extract(*request);
  if (!owed) return via.Wait(request, status);
  started(owed);
  if (refused_among(owed)) [[unlikely]] return finish_refused(owed, request, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int error = via.Wait(request, status);
  return conclude_one(owed, error, true, request, status);
}

template <Calls& via>
int test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (nothing_owed() || !request || !flag) [[likely]] return via.Test(request, flag, status);
  progress_orphans();
  Owed* owed = runtime().in_flight.extract(*request);
  if (!owed) return via.Test(request, flag, status);
  started(owed);
  if (refused_among(owed)) [[unlikely]] {
    *flag = 1;
    return finish_refused(owed, request, status);
  }
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *flag = 0;
  const int error = via.Test(request, flag, status);
  return conclude_one(owed, error, *flag, request, status);
}

/// `index`: of the completed request, or MPI_UNDEFINED. Everything else goes back. Returns the call's error.
int finish_any(Owed* owed, int error, int index, MPI_Request* requests, const MPI_Status* status) noexcept {
  Together together;
  Fault fault;
  while (owed) {
    Owed* following = owed->chain;
    if (owed->index == index)
      fault = finish_one(owed, error, true, &requests[index], status);
    else
      runtime().in_flight.put_back(owed);
    owed = following;
  }
  return conclude(together, fault, error);
}

template <Calls& via>
int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (nothing_owed() || !requests || !index) [[likely]] return via.Waitany(count, requests, index, status);
  if (any_collective_pending()) [[unlikely]]
    return test_in_turns([&](int* flag) { return testany<via>(count, requests, index, flag, status); });
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Waitany(count, requests, index, status);
  started(owed);
  if (Owed* refused = refused_among(owed)) [[unlikely]] return complete_refused(owed, refused, requests, index, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  const int error = via.Waitany(count, requests, index, status);
  return finish_any(owed, error, *index, requests, status);
}

template <Calls& via>
int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (nothing_owed() || !requests || !index || !flag) [[likely]] return via.Testany(count, requests, index, flag, status);
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Testany(count, requests, index, flag, status);
  started(owed);
  if (Owed* refused = refused_among(owed)) [[unlikely]] {
    *flag = 1;
    return complete_refused(owed, refused, requests, index, status);
  }
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  *flag = 0;
  const int error = via.Testany(count, requests, index, flag, status);
  return finish_any(owed, error, *flag || error != MPI_SUCCESS ? *index : MPI_UNDEFINED, requests, status);
}

/// The library says that `request` is complete, and keeps it: delivers what is owed, once. Under the table's lock, because two
/// threads may ask for the status of one request at a time.
void settle_kept(MPI_Request request, const MPI_Status& status) noexcept {
  Owed* done = nullptr;
  runtime().in_flight.with(request, [&](Owed* owed) {
    if (owed->pending) {
      owed->pending = false;
      owed->settle(true, &status);
    }
    if (!keeps_handle(*owed)) done = owed;
    return !keeps_handle(*owed);
  });
  if (done) discard(done);
}

/// The same for one of several, where the status is not at hand.
void settle_kept(MPI_Request request) noexcept {
  if (!runtime().in_flight.find(request)) return;
  int flag = 0;
  MPI_Status status;
  if (real.Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag) settle_kept(request, status);
}

template <Calls& via>
int request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (nothing_owed() || !flag) [[likely]] return via.Request_get_status(request, flag, status);
  start_posted();
  progress_orphans();
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int error = via.Request_get_status(request, flag, status);
  if (error == MPI_SUCCESS && *flag) settle_kept(request, *status);
  return error;
}

template <Calls& via>
int request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  start_posted();
  const int error = via.Request_get_status_all(count, requests, flag, statuses);
  if (!nothing_owed() && error == MPI_SUCCESS && *flag)
    for (int i = 0; i < count; ++i) settle_kept(requests[i]);
  return error;
}

template <Calls& via>
int request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  start_posted();
  const int error = via.Request_get_status_any(count, requests, index, flag, status);
  if (!nothing_owed() && error == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) settle_kept(requests[*index]);
  return error;
}

template <Calls& via>
int request_get_status_some(int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  start_posted();
  const int error = via.Request_get_status_some(count, requests, done, indices, statuses);
  if (!nothing_owed() && error == MPI_SUCCESS && *done != MPI_UNDEFINED)
    for (int i = 0; i < *done; ++i) settle_kept(requests[indices[i]]);
  return error;
}

template <Calls& via>
int request_free(MPI_Request* request) {
  if (nothing_owed() || !request) [[likely]] return via.Request_free(request);
  Owed* owed = runtime().in_flight.extract(*request);
  if (!owed) return via.Request_free(request);
  started(owed);
  if (owed->pending) {
    adopt_orphan(owed);
    *request = MPI_REQUEST_NULL;
    progress_orphans();
    return MPI_SUCCESS;
  }
  const int error = via.Request_free(request);
  if (error == MPI_SUCCESS)
    discard(owed);
  else
    runtime().in_flight.put_back(owed);
  return error;
}

// Only so that collectives are carried on meanwhile.
template <Calls& via>
int probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return test_in_turns([&](int* flag) { return real.Iprobe(source, tag, comm, flag, status); });
  return via.Probe(source, tag, comm, status);
}
template <Calls& via>
int mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (any_collective_pending()) [[unlikely]]
    return test_in_turns([&](int* flag) { return real.Improbe(source, tag, comm, flag, message, status); });
  return via.Mprobe(source, tag, comm, message, status);
}
// Only so that collectives of ours on the same communicator end first.
template <Calls& via>
int barrier(MPI_Comm comm) {
  before_library_collective(comm);
  return via.Barrier(comm);
}

}  // namespace
}  // namespace bestride

BESTRIDE_BOTH_ENTRIES(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status), probe, (source, tag, comm, status))
BESTRIDE_BOTH_ENTRIES(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status), mprobe,
                      (source, tag, comm, message, status))
BESTRIDE_BOTH_ENTRIES(Barrier, (MPI_Comm comm), barrier, (comm))
BESTRIDE_BOTH_ENTRIES(Wait, (MPI_Request* request, MPI_Status* status), wait, (request, status))
BESTRIDE_BOTH_ENTRIES(Test, (MPI_Request* request, int* flag, MPI_Status* status), test, (request, flag, status))
BESTRIDE_BOTH_ENTRIES(Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status), waitany,
                      (count, requests, index, status))
BESTRIDE_BOTH_ENTRIES(Testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status), testany,
                      (count, requests, index, flag, status))
BESTRIDE_BOTH_ENTRIES(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status), request_get_status,
                      (request, flag, status))
BESTRIDE_BOTH_ENTRIES(Request_get_status_all, (int count, const MPI_Request* requests, int* flag, MPI_Status* statuses),
                      request_get_status_all, (count, requests, flag, statuses))
BESTRIDE_BOTH_ENTRIES(Request_get_status_any, (int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status),
                      request_get_status_any, (count, requests, index, flag, status))
BESTRIDE_BOTH_ENTRIES(Request_get_status_some,
                      (int count, const MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                      request_get_status_some, (count, requests, done, indices, statuses))
BESTRIDE_BOTH_ENTRIES(Request_free, (MPI_Request* request), request_free, (request))
