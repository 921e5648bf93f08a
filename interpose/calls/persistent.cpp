// SPDX-License-Identifier: Apache-2.0
// Persistent requests: bound to a packing buffer once, packed before each start, unpacked once after each completion.
#include <memory>
#include <type_traits>

#include "interpose/calls/entry.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/mpi/nested_calls.hpp"

namespace bestride::inline interpose {
namespace {

MessageCompletion* new_persistent_message() noexcept {
  MessageCompletion* completion = new_message_completion();
  if (completion) {
    completion->persistent = true;
    completion->pending = false;
  }
  return completion;
}

template <Calls& via, auto slot, class OneEndpoint, class Buffer, class Count>
int init(CallId id, OneEndpoint MessageCompletion::*member, Buffer* buffer, Count count, MPI_Datatype type, int peer,
         int tag, MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = find_candidate(type, count);
  if (!entry || !request) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  // A persistent request will be reused, so its plan is made at the first use.
  entry->expect_reuse();
  const Stopwatch watch(reporting());
  OneEndpoint endpoint;
  std::unique_ptr<MessageCompletion> completion;
  const bool ours =
      endpoint.prepare(buffer, count, entry, peer, comm, largest_count<Count>, {.engine = !is_buffered<slot>});
  const bool kept =
      ours && (!endpoint.packs() || (completion = std::unique_ptr<MessageCompletion>(new_persistent_message())));
  if (!kept) endpoint.refuse_device_memory();
  if (endpoint.failed()) [[unlikely]]
    return endpoint.raise_error();
  if (kept) {
    buffer = static_cast<Buffer*>(endpoint.buffer());
    count = static_cast<Count>(endpoint.count());
    type = endpoint.type();
  }
  const int error = (via.*slot)(buffer, count, type, peer, tag, comm, request);
  if (reporting()) [[unlikely]]
    record(id, endpoint, watch.seconds());
  if (error != MPI_SUCCESS) return error;
  runtime().comms.add_valid(comm);
  if (completion) {
    (*completion).*member = std::move(endpoint);
    attach(completion.release(), *request);
  }
  return error;
}

template <Calls& via, auto slot, class Count>
int send_init(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return init<via, slot>(id, &MessageCompletion::out, buffer, count, type, peer, tag, comm, request);
}
template <Calls& via, auto slot, class Count>
int recv_init(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return init<via, slot>(id, &MessageCompletion::in, buffer, count, type, peer, tag, comm, request);
}

/// Fills the buffers of a request that is about to be started. Returns its completion if this start has to be undone
/// when the start fails, else nullptr.
Completion* before_start(MPI_Request request) noexcept {
  Completion* completion = runtime().requests.find(request);
  if (!completion || !completion->persistent || completion->pending) return nullptr;
  completion->fill();
  completion->pending = true;
  return completion;
}

/// Fills the buffers of several requests that are about to be started, in one launch per device. Returns the error of
/// the call; on an error, none of the requests may be started.
int fill_batch(int count, MPI_Request* requests) noexcept {
  TransferBatch batch;
  for (int i = 0; i < count; ++i) before_start(requests[i]);
  batch.flush();
  int error = MPI_SUCCESS;
  for (int i = 0; i < count; ++i)
    if (Completion* completion = runtime().requests.find(requests[i]);
        completion && completion->persistent && completion->failed() && error == MPI_SUCCESS)
      error = completion->raise_error();
  if (error != MPI_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (Completion* completion = runtime().requests.find(requests[i]); completion && completion->persistent)
        completion->pending = false;
  return error;
}

template <Calls& via>
int start(MPI_Request* request) {
  if (runtime().requests.empty() || !request || nested<via>()) [[likely]]
    return via.Start(request);
  progress_freed_requests();
  Completion* completion = before_start(*request);
  if (completion && completion->failed()) [[unlikely]] {
    completion->pending = false;
    return completion->raise_error();
  }
  int error;
  try {
    error = inside(via.Start, request);
  } catch (...) {
    if (completion) completion->pending = false;
    throw;
  }
  if (completion && error == MPI_SUCCESS) completion->has_started();
  if (completion && error != MPI_SUCCESS) completion->pending = false;
  return error;
}

template <Calls& via>
int startall(int count, MPI_Request* requests) {
  if (runtime().requests.empty() || !requests || count <= 0 || nested<via>()) [[likely]]
    return via.Startall(count, requests);
  progress_freed_requests();
  if (gpu_runtime_detected()) [[unlikely]] {
    if (const int error = fill_batch(count, requests); error != MPI_SUCCESS) return error;
  } else {
    for (int i = 0; i < count; ++i) before_start(requests[i]);
  }
  // On an error it is not known which requests were started. They stay pending, and are completed at most once.
  const int error = inside(via.Startall, count, requests);
  if (error == MPI_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (Completion* completion = runtime().requests.find(requests[i]); completion && completion->persistent)
        completion->has_started();
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Start, (MPI_Request * request), start, (request))
BESTRIDE_PLAIN_ENTRY(Startall, (int count, MPI_Request* requests), startall, (count, requests))

#define BESTRIDE_PERSISTENT_ENTRIES(suffix, Count)                                                                  \
  BESTRIDE_MESSAGE_ENTRY(Send_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request))  \
  BESTRIDE_MESSAGE_ENTRY(Ssend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Bsend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Rsend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Recv_init##suffix, recv_init, void*, Count, (, MPI_Request * request), (, request))

BESTRIDE_PERSISTENT_ENTRIES(, int)
BESTRIDE_PERSISTENT_ENTRIES(_c, MPI_Count)
