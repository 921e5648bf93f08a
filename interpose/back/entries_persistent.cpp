// SPDX-License-Identifier: Apache-2.0
// Persistent requests: bound to our buffer once, packed before each start, unpacked once after each completion.
#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/owed.hpp"

namespace bestride {
namespace {

OwedMessage* new_persistent_message() noexcept {
  OwedMessage* owed = new_owed_message();
  if (owed) {
    owed->persistent = true;
    owed->pending = false;
  }
  return owed;
}

template <auto slot, class Direction, class Buffer, class Count>
int init(CallId id, Direction OwedMessage::* direction, Buffer* buffer, Count count, MPI_Datatype type, int peer, int tag,
         MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = worth_a_look(type, count);
  if (!entry || !request) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  // A persistent request will be used again: no waiting for the second use.
  entry->expect_reuse();
  const Stopwatch watch(reporting());
  Direction side;
  OwedMessage* owed = nullptr;
  const bool ours = side.prepare(buffer, count, entry, peer, comm, largest_count<Count>);
  const bool kept = ours && (!side.packs() || (owed = new_persistent_message()));
  if (!kept) side.refuse_on_gpu();
  if (side.refused()) [[unlikely]] return side.raise();
  if (kept) {
    buffer = static_cast<Buffer*>(side.buffer());
    count = static_cast<Count>(side.count());
    type = side.type();
  }
  const int error = (next.*slot)(buffer, count, type, peer, tag, comm, request);
  if (reporting()) [[unlikely]] note(id, side, watch.seconds());
  if (error != MPI_SUCCESS) {
    delete owed;
    return error;
  }
  runtime().comms.note(comm);
  if (owed) {
    owed->*direction = std::move(side);
    hang(owed, *request);
  }
  return error;
}

template <auto slot, class Count>
int send_init(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return init<slot>(id, &OwedMessage::out, buffer, count, type, peer, tag, comm, request);
}
template <auto slot, class Count>
int recv_init(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return init<slot>(id, &OwedMessage::in, buffer, count, type, peer, tag, comm, request);
}

/// Fills the buffers of a request that is about to be started. Returns what hangs on it if this start is ours to undo.
Owed* before_start(MPI_Request request) noexcept {
  Owed* owed = runtime().in_flight.find(request);
  if (!owed || !owed->persistent || owed->pending) return nullptr;
  owed->fill();
  owed->pending = true;
  return owed;
}

/// The same for many, packed in one launch. An error: none may be started.
int fill_together(int count, MPI_Request* requests) noexcept {
  Together together;
  for (int i = 0; i < count; ++i) before_start(requests[i]);
  together.conclude();
  int error = MPI_SUCCESS;
  for (int i = 0; i < count; ++i)
    if (Owed* owed = runtime().in_flight.find(requests[i]); owed && owed->persistent && owed->refused() && error == MPI_SUCCESS)
      error = owed->raise();
  if (error != MPI_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (Owed* owed = runtime().in_flight.find(requests[i]); owed && owed->persistent) owed->pending = false;
  return error;
}

template <Calls& via>
int start(MPI_Request* request) {
  if (runtime().in_flight.empty() || !request) [[likely]] return via.Start(request);
  progress_orphans();
  Owed* owed = before_start(*request);
  if (owed && owed->refused()) [[unlikely]] {
    owed->pending = false;
    return owed->raise();
  }
  const int error = via.Start(request);
  if (owed && error == MPI_SUCCESS) owed->has_started();
  if (owed && error != MPI_SUCCESS) owed->pending = false;
  return error;
}

template <Calls& via>
int startall(int count, MPI_Request* requests) {
  if (runtime().in_flight.empty() || !requests || count <= 0) [[likely]] return via.Startall(count, requests);
  progress_orphans();
  if (gpu_in_play()) [[unlikely]] {
    if (const int error = fill_together(count, requests); error != MPI_SUCCESS) return error;
  } else {
    for (int i = 0; i < count; ++i) before_start(requests[i]);
  }
  // On an error it is not known which were started: they stay pending, and are settled at most once.
  const int error = via.Startall(count, requests);
  if (error == MPI_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (Owed* owed = runtime().in_flight.find(requests[i]); owed && owed->persistent) owed->has_started();
  return error;
}

}  // namespace
}  // namespace bestride

BESTRIDE_BOTH_ENTRIES(Start, (MPI_Request* request), start, (request))
BESTRIDE_BOTH_ENTRIES(Startall, (int count, MPI_Request* requests), startall, (count, requests))

#define BESTRIDE_PERSISTENT_ENTRIES(suffix, Count) \
  BESTRIDE_MESSAGE_ENTRY(Send_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Ssend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Bsend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Rsend_init##suffix, send_init, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Recv_init##suffix, recv_init, void*, Count, (, MPI_Request * request), (, request))

BESTRIDE_PERSISTENT_ENTRIES(, int)
#if MPI_VERSION >= 4
BESTRIDE_PERSISTENT_ENTRIES(_c, MPI_Count)
#endif
