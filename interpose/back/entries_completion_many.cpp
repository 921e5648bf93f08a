// SPDX-License-Identifier: Apache-2.0
// Completion of many requests: Waitall, Testall, Waitsome, Testsome. While nothing is owed anywhere, each costs one load.
#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/owed.hpp"
#include "interpose/back/statuses.hpp"

namespace bestride {
namespace {

int class_of(int error) noexcept {
  int error_class = error;
  if (error != MPI_SUCCESS) real.Error_class(error, &error_class);
  return error_class;
}

bool any_wants_status(const Owed* owed) noexcept {
  for (; owed; owed = owed->chain)
    if (owed->wants_status()) return true;
  return false;
}

void put_back_all(Owed* owed) noexcept {
  while (owed) {
    Owed* following = owed->chain;
    runtime().in_flight.put_back(owed);
    owed = following;
  }
}

/// Faults of single requests; the first one's communicator gets the error of the call.
struct Faults {
  Fault first;
  void add(const Fault& fault, MPI_Status* status) noexcept {
    if (fault.error == MPI_SUCCESS) return;
    if (status) status->MPI_ERROR = fault.error;
    if (first.error == MPI_SUCCESS) first = fault;
  }
};

/// What the GPU could not move is an error of its own request's. `statuses`: `count` of them, or MPI_STATUSES_IGNORE. Returns the call's error.
int conclude(Together& together, const Faults& faults, int error, int count, MPI_Status* statuses) noexcept {
  const Part* lost = together.conclude();
  if (faults.first.error != MPI_SUCCESS) raise(faults.first.comm, error = MPI_ERR_IN_STATUS);
  if (!lost) return error;
  if (statuses != MPI_STATUSES_IGNORE) {
    if (class_of(error) != MPI_ERR_IN_STATUS)
      for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
    together.each_failed([&](const Part& part) { statuses[part.index].MPI_ERROR = MPI_ERR_OTHER; });
  }
  return error == MPI_SUCCESS ? raise(lost->staging->comm(), MPI_ERR_IN_STATUS) : error;
}

/// Of what was taken out for a call, disguised requests that were refused: all end here, as if the call had completed them alone, and the others go
/// back. Returns how many, their indices in `indices` and their errors in `statuses` where those are wanted.
int complete_refused(Owed* owed, MPI_Request* requests, int* indices, MPI_Status* statuses) noexcept {
  int done = 0;
  while (owed) {
    Owed* following = owed->chain;
    if (owed->disguised && owed->refused()) {
      const int index = owed->index;
      const int error = finish_refused(owed, &requests[index], MPI_STATUS_IGNORE);
      if (statuses != MPI_STATUSES_IGNORE) statuses[indices ? done : index].MPI_ERROR = error;
      if (indices) indices[done] = index;
      ++done;
    } else {
      runtime().in_flight.put_back(owed);
    }
    owed = following;
  }
  return done;
}

/// After Waitall, or a Testall that said yes. `statuses` may be MPI_STATUSES_IGNORE if no one wants one. Returns the call's error.
int finish_all(Owed* owed, int error, int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  Together together;
  Faults faults;
  const bool known = statuses != MPI_STATUSES_IGNORE;
  const bool one_by_one = class_of(error) == MPI_ERR_IN_STATUS;
  while (owed) {
    Owed* following = owed->chain;
    MPI_Status* status = known ? &statuses[owed->index] : nullptr;
    const int own_error = !one_by_one ? error : status ? status->MPI_ERROR : error;
    const bool completed = keeps_handle(*owed) ? error == MPI_SUCCESS || (one_by_one && class_of(own_error) != MPI_ERR_PENDING)
                                               : requests[owed->index] == MPI_REQUEST_NULL;
    together.about(owed->index);
    faults.add(finish(owed, completed, own_error == MPI_SUCCESS, status, &requests[owed->index]), status);
    owed = following;
  }
  return conclude(together, faults, error, count, statuses);
}

/// After Waitsome or Testsome. Returns the call's error.
int finish_some(Owed* owed, int error, int done, const int* indices, MPI_Request* requests, MPI_Status* statuses) noexcept {
  Together together;
  Faults faults;
  const bool known = statuses != MPI_STATUSES_IGNORE;
  const bool one_by_one = class_of(error) == MPI_ERR_IN_STATUS;
  if (done == MPI_UNDEFINED || (error != MPI_SUCCESS && !one_by_one)) done = 0;
  int at = 0;  // both lists usually ascend, so the search goes on where it stopped
  while (owed) {
    Owed* following = owed->chain;
    int found = -1;
    for (int i = 0; i < done && found < 0; ++i)
      if (const int k = at + i < done ? at + i : at + i - done; indices[k] == owed->index) found = at = k;
    if (found < 0) {
      runtime().in_flight.put_back(owed);
    } else {
      MPI_Status* status = known ? &statuses[found] : nullptr;
      const bool good = error == MPI_SUCCESS || (status && status->MPI_ERROR == MPI_SUCCESS);
      together.about(found);
      const bool completed = keeps_handle(*owed) || requests[owed->index] == MPI_REQUEST_NULL;
      faults.add(finish(owed, completed, good, status, &requests[owed->index]), status);
    }
    owed = following;
  }
  return conclude(together, faults, error, done, statuses);
}

template <Calls& via>
int waitall(int count, MPI_Request* requests, MPI_Status* statuses);

/// Without memory for all statuses: a piece at a time, each with statuses on the stack.
template <Calls& via>
int waitall_in_pieces(int count, MPI_Request* requests) {
  int result = MPI_SUCCESS;
  for (int from = 0; from < count; from += piece_of_requests) {
    MPI_Status statuses[piece_of_requests];
    const int error = waitall<via>(count - from < piece_of_requests ? count - from : piece_of_requests, requests + from, statuses);
    if (error != MPI_SUCCESS) result = error;
  }
  return result;
}

/// Those that were refused end with an error of ours; the others stay pending, which MPI allows then: what they wait for may be what
/// could not be sent.
int waitall_refused(Owed* owed, int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  if (statuses != MPI_STATUSES_IGNORE)
    for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = requests[i] == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_ERR_PENDING;
  complete_refused(owed, requests, nullptr, statuses);
  return MPI_ERR_IN_STATUS;
}

template <Calls& via>
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);

template <Calls& via>
int waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests) [[likely]] return via.Waitall(count, requests, statuses);
  if (any_collective_pending()) [[unlikely]]
    return test_in_turns([&](int* flag) { return testall<via>(count, requests, flag, statuses); });
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Waitall(count, requests, statuses);
  started(owed);
  if (refused_among(owed)) [[unlikely]] return waitall_refused(owed, count, requests, statuses);
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(owed) && !(statuses = own.make(count))) {
    put_back_all(owed);
    return waitall_in_pieces<via>(count, requests);
  }
  const int error = via.Waitall(count, requests, statuses);
  return finish_all(owed, error, count, requests, statuses);
}

template <Calls& via>
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests || !flag) [[likely]] return via.Testall(count, requests, flag, statuses);
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Testall(count, requests, flag, statuses);
  started(owed);
  if (refused_among(owed)) [[unlikely]] {
    *flag = 1;
    return waitall_refused(owed, count, requests, statuses);
  }
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(owed) && !(statuses = own.make(count))) {
    put_back_all(owed);
    *flag = 1;
    for (int i = 0; i < count && *flag; ++i)
      if (const int error = real.Request_get_status(requests[i], flag, MPI_STATUS_IGNORE); error != MPI_SUCCESS) *flag = 1;
    return *flag ? waitall_in_pieces<via>(count, requests) : MPI_SUCCESS;
  }
  *flag = 0;
  const int error = via.Testall(count, requests, flag, statuses);
  if (error != MPI_SUCCESS || *flag) return finish_all(owed, error, count, requests, statuses);
  put_back_all(owed);
  return error;
}

/// MPI_Waitsome or MPI_Testsome, `call`, of a type of its own.
using Some = int (*)(int, MPI_Request*, int*, int*, MPI_Status*);

int some(Some call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses);

/// Without memory for all statuses: the first piece in which something is complete.
int some_in_pieces(Some test, bool waits, int count, MPI_Request* requests, int* done, int* indices) {
  for (;;) {
    bool active = false;
    for (int from = 0; from < count; from += piece_of_requests) {
      MPI_Status statuses[piece_of_requests];
      const int error = some(test, count - from < piece_of_requests ? count - from : piece_of_requests, requests + from, done,
                             indices, statuses);
      if (*done == MPI_UNDEFINED) continue;
      active = true;
      for (int i = 0; i < *done; ++i) indices[i] += from;
      if (*done > 0 || error != MPI_SUCCESS) return error;
    }
    *done = active ? 0 : MPI_UNDEFINED;
    if (!waits || !active) return MPI_SUCCESS;
  }
}

int some(Some call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return call(count, requests, done, indices, statuses);
  started(owed);
  if (refused_among(owed)) [[unlikely]] {
    *done = complete_refused(owed, requests, indices, statuses);
    return MPI_ERR_IN_STATUS;
  }
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(owed) && !(statuses = own.make(count))) {
    put_back_all(owed);
    return some_in_pieces(real.Testsome, call != next.Testsome && call != real.Testsome, count, requests, done, indices);
  }
  *done = 0;
  const int error = call(count, requests, done, indices, statuses);
  return finish_some(owed, error, *done, indices, requests, statuses);
}

template <Calls& via>
int waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests || !done || !indices) [[likely]]
    return via.Waitsome(count, requests, done, indices, statuses);
  if (any_collective_pending()) [[unlikely]]
    return test_in_turns([&](int* flag) {
      const int error = some(via.Testsome, count, requests, done, indices, statuses);
      *flag = *done != 0;
      return error;
    });
  progress_orphans();
  return some(via.Waitsome, count, requests, done, indices, statuses);
}

template <Calls& via>
int testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests || !done || !indices) [[likely]]
    return via.Testsome(count, requests, done, indices, statuses);
  progress_orphans();
  return some(via.Testsome, count, requests, done, indices, statuses);
}

}  // namespace
}  // namespace bestride

BESTRIDE_BOTH_ENTRIES(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), waitall, (count, requests, statuses))
BESTRIDE_BOTH_ENTRIES(Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses), testall,
                      (count, requests, flag, statuses))
BESTRIDE_BOTH_ENTRIES(Waitsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses), waitsome,
                      (count, requests, done, indices, statuses))
BESTRIDE_BOTH_ENTRIES(Testsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses), testsome,
                      (count, requests, done, indices, statuses))
