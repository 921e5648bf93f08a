// SPDX-License-Identifier: Apache-2.0
// Completion of many requests: Waitall, Testall, Waitsome, Testsome. While nothing is owed anywhere, each costs one load.
#include "interpose/back/entries.hpp"
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

/// After Waitall, or a Testall that said yes. `statuses` may be MPI_STATUSES_IGNORE if no one wants one.
void finish_all(Owed* owed, int error, const MPI_Request* requests, const MPI_Status* statuses) noexcept {
  const bool known = statuses != MPI_STATUSES_IGNORE;
  const bool one_by_one = class_of(error) == MPI_ERR_IN_STATUS;
  while (owed) {
    Owed* following = owed->chain;
    const MPI_Status* status = known ? &statuses[owed->index] : nullptr;
    const int own_error = !one_by_one ? error : status ? status->MPI_ERROR : error;
    const bool completed = owed->persistent ? error == MPI_SUCCESS || (one_by_one && class_of(own_error) != MPI_ERR_PENDING)
                                            : requests[owed->index] == MPI_REQUEST_NULL;
    finish(owed, completed, own_error == MPI_SUCCESS, status);
    owed = following;
  }
}

/// After Waitsome or Testsome.
void finish_some(Owed* owed, int error, int done, const int* indices, const MPI_Request* requests,
                 const MPI_Status* statuses) noexcept {
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
      const MPI_Status* status = known ? &statuses[found] : nullptr;
      const bool good = error == MPI_SUCCESS || (status && status->MPI_ERROR == MPI_SUCCESS);
      finish(owed, owed->persistent || requests[owed->index] == MPI_REQUEST_NULL, good, status);
    }
    owed = following;
  }
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

template <Calls& via>
int waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests) [[likely]] return via.Waitall(count, requests, statuses);
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Waitall(count, requests, statuses);
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(owed) && !(statuses = own.make(count))) {
    put_back_all(owed);
    return waitall_in_pieces<via>(count, requests);
  }
  const int error = via.Waitall(count, requests, statuses);
  finish_all(owed, error, requests, statuses);
  return error;
}

template <Calls& via>
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests || !flag) [[likely]] return via.Testall(count, requests, flag, statuses);
  progress_orphans();
  Owed* owed = runtime().in_flight.extract_all(requests, count);
  if (!owed) return via.Testall(count, requests, flag, statuses);
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
  if (error == MPI_SUCCESS && !*flag)
    put_back_all(owed);
  else
    finish_all(owed, error, requests, statuses);
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
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(owed) && !(statuses = own.make(count))) {
    put_back_all(owed);
    return some_in_pieces(real.Testsome, call != next.Testsome && call != real.Testsome, count, requests, done, indices);
  }
  *done = 0;
  const int error = call(count, requests, done, indices, statuses);
  finish_some(owed, error, *done, indices, requests, statuses);
  return error;
}

template <Calls& via>
int waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (runtime().in_flight.empty() || !requests || !done || !indices) [[likely]]
    return via.Waitsome(count, requests, done, indices, statuses);
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
