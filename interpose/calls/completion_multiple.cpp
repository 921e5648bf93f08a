// SPDX-License-Identifier: Apache-2.0
// Completion of many requests: Waitall, Testall, Waitsome, Testsome. If no request has a completion, each call costs
// one load.
#include "interpose/calls/entry.hpp"
#include "interpose/calls/statuses.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/completion.hpp"

namespace bestride::inline interpose {
namespace {

int class_of(int error) noexcept {
  int error_class = error;
  if (error != MPI_SUCCESS) real.Error_class(error, &error_class);
  return error_class;
}

bool any_wants_status(const Completion* completion) noexcept {
  for (; completion; completion = completion->chain)
    if (completion->wants_status()) return true;
  return false;
}

void put_back_all(Completion* completion) noexcept {
  while (completion) {
    Completion* following = completion->chain;
    runtime().requests.put_back(completion);
    completion = following;
  }
}

/// Collects the errors of single requests; the error of the call is raised on the communicator of the first one.
struct Faults {
  CompletionError first;
  void add(const CompletionError& fault, MPI_Status* status) noexcept {
    if (fault.error == MPI_SUCCESS) return;
    if (status) status->MPI_ERROR = fault.error;
    if (first.error == MPI_SUCCESS) first = fault;
  }
};

/// Moves the bytes of the batch. If a part fails, this is an error of the request that the part belongs to. `statuses`:
/// `count` statuses, or MPI_STATUSES_IGNORE. Returns the call's error.
int flush(TransferBatch& batch, const Faults& faults, int error, int count, MPI_Status* statuses) {
  const TransferPart* lost = batch.flush();
  if (faults.first.error != MPI_SUCCESS) raise_error(faults.first.comm, error = MPI_ERR_IN_STATUS);
  if (!lost) return error;
  if (statuses != MPI_STATUSES_IGNORE) {
    if (class_of(error) != MPI_ERR_IN_STATUS)
      for (int i = 0; i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
    batch.for_each_failed([&](const TransferPart& part) { statuses[part.index].MPI_ERROR = MPI_ERR_OTHER; });
  }
  return error == MPI_SUCCESS ? raise_error(lost->staging->comm(), MPI_ERR_IN_STATUS) : error;
}

/// Completes all emulates_nonblocking requests in the list that failed, as if the call had completed only these,
/// and puts the others back. Returns their number; their indices are in `indices` and their errors in `statuses`,
/// unless these are null or MPI_STATUSES_IGNORE.
int complete_failed(Completion* completion, MPI_Request* requests, int* indices, MPI_Status* statuses) {
  int done = 0;
  while (completion) {
    Completion* following = completion->chain;
    if (completion->emulates_nonblocking && completion->failed()) {
      const int index = completion->index;
      const int error = finish_failed(completion, &requests[index], MPI_STATUS_IGNORE);
      if (statuses != MPI_STATUSES_IGNORE) statuses[indices ? done : index].MPI_ERROR = error;
      if (indices) indices[done] = index;
      ++done;
    } else {
      runtime().requests.put_back(completion);
    }
    completion = following;
  }
  return done;
}

/// Call after Waitall, or after a Testall whose flag is true. `error`: the library's. `statuses` may be
/// MPI_STATUSES_IGNORE if no completion needs one.
void complete_all(Completion* completion, int error, MPI_Request* requests, MPI_Status* statuses, TransferBatch& batch,
                  Faults& faults) noexcept {
  const bool known = statuses != MPI_STATUSES_IGNORE;
  const bool one_by_one = class_of(error) == MPI_ERR_IN_STATUS;
  while (completion) {
    Completion* following = completion->chain;
    MPI_Status* status = known ? &statuses[completion->index] : nullptr;
    const int own_error = !one_by_one ? error : status ? status->MPI_ERROR : error;
    const bool completed = keeps_handle(*completion)
                               ? error == MPI_SUCCESS || (one_by_one && class_of(own_error) != MPI_ERR_PENDING)
                               : requests[completion->index] == MPI_REQUEST_NULL;
    batch.set_request_index(completion->index);
    faults.add(finish(completion, completed, own_error == MPI_SUCCESS, status, &requests[completion->index]), status);
    completion = following;
  }
}

/// Returns the call's error.
int complete_all_of(Completion* completion, int error, int count, MPI_Request* requests, MPI_Status* statuses) {
  TransferBatch batch;
  Faults faults;
  complete_all(completion, error, requests, statuses, batch, faults);
  return flush(batch, faults, error, count, statuses);
}

/// The library's call for all of `completion`. If its error handler throws, the completed requests are handled first.
template <class Call>
int unless_exception(Completion* completion, MPI_Request* requests, MPI_Status* statuses, Call call) {
  try {
    return call();
  } catch (...) {
    TransferBatch batch;
    Faults faults;
    complete_all(completion, MPI_ERR_IN_STATUS, requests, statuses, batch, faults);
    throw;
  }
}

/// Call after Waitsome or Testsome. Returns the call's error.
int complete_some(Completion* completion, int error, int done, const int* indices, MPI_Request* requests,
                  MPI_Status* statuses) {
  TransferBatch batch;
  Faults faults;
  const bool known = statuses != MPI_STATUSES_IGNORE;
  const bool one_by_one = class_of(error) == MPI_ERR_IN_STATUS;
  if (done == MPI_UNDEFINED || (error != MPI_SUCCESS && !one_by_one)) done = 0;
  int at = 0;  // both lists are usually ascending, so the search continues where it stopped
  while (completion) {
    Completion* following = completion->chain;
    int found = -1;
    for (int i = 0; i < done && found < 0; ++i)
      if (const int k = at + i < done ? at + i : at + i - done; indices[k] == completion->index) found = at = k;
    if (found < 0) {
      runtime().requests.put_back(completion);
    } else {
      MPI_Status* status = known ? &statuses[found] : nullptr;
      const bool good = error == MPI_SUCCESS || (status && status->MPI_ERROR == MPI_SUCCESS);
      batch.set_request_index(found);
      const bool completed = keeps_handle(*completion) || requests[completion->index] == MPI_REQUEST_NULL;
      faults.add(finish(completion, completed, good, status, &requests[completion->index]), status);
    }
    completion = following;
  }
  return flush(batch, faults, error, done, statuses);
}

template <Calls& via>
int waitall(int count, MPI_Request* requests, MPI_Status* statuses);

/// Used if there is no memory for all statuses: one piece at a time, with statuses on the stack.
template <Calls& via>
int waitall_in_pieces(int count, MPI_Request* requests) {
  int result = MPI_SUCCESS;
  for (int from = 0; from < count; from += requests_per_piece) {
    MPI_Status statuses[requests_per_piece];
    const int error =
        waitall<via>(count - from < requests_per_piece ? count - from : requests_per_piece, requests + from, statuses);
    if (error != MPI_SUCCESS) result = error;
  }
  return result;
}

/// The failed requests complete with an error of Bestride's own. The others stay pending, which MPI allows in this
/// case: they may wait for a message that could not be sent.
int waitall_failed(Completion* completion, int count, MPI_Request* requests, MPI_Status* statuses) {
  if (statuses != MPI_STATUSES_IGNORE)
    for (int i = 0; i < count; ++i)
      statuses[i].MPI_ERROR = requests[i] == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_ERR_PENDING;
  complete_failed(completion, requests, nullptr, statuses);
  return MPI_ERR_IN_STATUS;
}

/// Makes progress on the collectives among these requests until they end; the library waits for the other requests.
/// MPI_Testall on all of them is not used (quirks::testall_fails_for_persistent_collectives).
void progress_until_ended(Completion* completion) {
  for (; completion; completion = completion->chain)
    if (!completion->ended())
      poll_until_complete([&](int* flag) {
        completion->poll();
        *flag = completion->ended();
        return MPI_SUCCESS;
      });
}

template <Calls& via>
[[gnu::noinline]] int waitall_attached(int count, MPI_Request* requests, MPI_Status* statuses);

template <Calls& via>
int waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (runtime().requests.empty() || !requests) [[likely]]
    return via.Waitall(count, requests, statuses);
  return waitall_attached<via>(count, requests, statuses);
}

template <Calls& via>
int waitall_attached(int count, MPI_Request* requests, MPI_Status* statuses) {
  progress_freed_requests();
  Completion* completion = runtime().requests.extract_all(requests, count);
  if (!completion) return via.Waitall(count, requests, statuses);
  started(completion);
  if (find_failed(completion)) [[unlikely]]
    return waitall_failed(completion, count, requests, statuses);
  if (any_collective_pending()) [[unlikely]]
    progress_until_ended(completion);
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(completion) && !(statuses = own.make(count))) {
    put_back_all(completion);
    return waitall_in_pieces<via>(count, requests);
  }
  const int error =
      unless_exception(completion, requests, statuses, [&] { return via.Waitall(count, requests, statuses); });
  return complete_all_of(completion, error, count, requests, statuses);
}

template <Calls& via>
[[gnu::noinline]] int testall_attached(int count, MPI_Request* requests, int* flag, MPI_Status* statuses);

template <Calls& via>
int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (runtime().requests.empty() || !requests || !flag) [[likely]]
    return via.Testall(count, requests, flag, statuses);
  return testall_attached<via>(count, requests, flag, statuses);
}

template <Calls& via>
int testall_attached(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  progress_freed_requests();
  Completion* completion = runtime().requests.extract_all(requests, count);
  if (!completion) return via.Testall(count, requests, flag, statuses);
  started(completion);
  if (find_failed(completion)) [[unlikely]] {
    *flag = 1;
    return waitall_failed(completion, count, requests, statuses);
  }
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(completion) && !(statuses = own.make(count))) {
    put_back_all(completion);
    *flag = 1;
    for (int i = 0; i < count && *flag; ++i)
      if (const int error = real.Request_get_status(requests[i], flag, MPI_STATUS_IGNORE); error != MPI_SUCCESS)
        *flag = 1;
    return *flag ? waitall_in_pieces<via>(count, requests) : MPI_SUCCESS;
  }
  *flag = 0;
  const int error =
      unless_exception(completion, requests, statuses, [&] { return via.Testall(count, requests, flag, statuses); });
  if (error != MPI_SUCCESS || *flag) return complete_all_of(completion, error, count, requests, statuses);
  put_back_all(completion);
  return error;
}

/// `call` is MPI_Waitsome or MPI_Testsome. It has a type of its own.
using Some = int (*)(int, MPI_Request*, int*, int*, MPI_Status*);

int some(Some call, int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses);

/// Used if there is no memory for all statuses: the first piece in which a request is complete.
int some_in_pieces(Some test, bool waits, int count, MPI_Request* requests, int* done, int* indices) {
  for (;;) {
    bool active = false;
    for (int from = 0; from < count; from += requests_per_piece) {
      MPI_Status statuses[requests_per_piece];
      const int error = some(test, count - from < requests_per_piece ? count - from : requests_per_piece,
                             requests + from, done, indices, statuses);
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
  Completion* completion = runtime().requests.extract_all(requests, count);
  if (!completion) return call(count, requests, done, indices, statuses);
  started(completion);
  if (find_failed(completion)) [[unlikely]] {
    *done = complete_failed(completion, requests, indices, statuses);
    return MPI_ERR_IN_STATUS;
  }
  OwnStatuses own;
  if (statuses == MPI_STATUSES_IGNORE && any_wants_status(completion) && !(statuses = own.make(count))) {
    put_back_all(completion);
    return some_in_pieces(real.Testsome, call != next.Testsome && call != real.Testsome, count, requests, done,
                          indices);
  }
  *done = 0;
  const int error = call(count, requests, done, indices, statuses);
  return complete_some(completion, error, *done, indices, requests, statuses);
}

template <Calls& via>
int waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (runtime().requests.empty() || !requests || !done || !indices) [[likely]]
    return via.Waitsome(count, requests, done, indices, statuses);
  if (any_collective_pending()) [[unlikely]]
    return poll_until_complete([&](int* flag) {
      const int error = some(via.Testsome, count, requests, done, indices, statuses);
      *flag = *done != 0;
      return error;
    });
  progress_freed_requests();
  return some(via.Waitsome, count, requests, done, indices, statuses);
}

template <Calls& via>
int testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (runtime().requests.empty() || !requests || !done || !indices) [[likely]]
    return via.Testsome(count, requests, done, indices, statuses);
  progress_freed_requests();
  return some(via.Testsome, count, requests, done, indices, statuses);
}

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), waitall,
                     (count, requests, statuses))
BESTRIDE_PLAIN_ENTRY(Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses), testall,
                     (count, requests, flag, statuses))
BESTRIDE_PLAIN_ENTRY(Waitsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                     waitsome, (count, requests, done, indices, statuses))
BESTRIDE_PLAIN_ENTRY(Testsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
                     testsome, (count, requests, done, indices, statuses))
