// SPDX-License-Identifier: Apache-2.0
// Nonblocking sends and receives: the packed message is handed to MPI within the call, so its progress never depends on us; what
// is owed at completion hangs on the request. A respelled message owes nothing: MPI keeps the type it was given.
#include <type_traits>

#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/owed.hpp"

namespace bestride {
namespace {

/// After the call: hangs what is owed on the request if something is, or forgets it.
void hang_or_forget(OwedMessage* owed, int error, const MPI_Request* request) noexcept {
  if (error == MPI_SUCCESS && owed && (owed->out.packs() || owed->in.packs()))
    hang(owed, *request);
  else
    delete owed;
}

/// The persistent form of a nonblocking send. MPI_Ibsend has none here: its message is buffered within the call, also for MPI_Buffer_detach.
template <auto slot>
constexpr auto persistent_form = nullptr;
template <>
constexpr auto persistent_form<&Calls::Isend> = &Calls::Send_init;
template <>
constexpr auto persistent_form<&Calls::Issend> = &Calls::Ssend_init;
template <>
constexpr auto persistent_form<&Calls::Irsend> = &Calls::Rsend_init;
#if MPI_VERSION >= 4
template <>
constexpr auto persistent_form<&Calls::Isend_c> = &Calls::Send_init_c;
template <>
constexpr auto persistent_form<&Calls::Issend_c> = &Calls::Ssend_init_c;
template <>
constexpr auto persistent_form<&Calls::Irsend_c> = &Calls::Rsend_init_c;
#endif

/// Puts a short send of device memory into the queue of what is packed together (gpu/posted.hpp).
template <auto init, class Count>
int post_send(OwedMessage* owed, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  const Outgoing& out = owed->out;
  const int error = (next.*init)(out.buffer(), static_cast<Count>(out.count()), out.type(), peer, tag, comm, request);
  if (error != MPI_SUCCESS) {
    delete owed;
    return error;
  }
  runtime().comms.note(comm);
  owed->disguised = true;
  const StagingPtr staging = out.staging();
  // First what it owes: once queued, another thread may start it, and it may be refused.
  hang(owed, *request);
  if (post(*request, staging)) return MPI_SUCCESS;
  Together::move(staging, cuda::Direction::pack, 0, staging->size());
  MPI_Request now = *request;
  return staging->failed() ? MPI_SUCCESS : next.Start(&now);
}

template <auto slot, class Count>
int isend(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = worth_a_look(type, count, CallKind::isend, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    start_posted();
    return (next.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  const Stopwatch watch(reporting());
  Outgoing out;
  OwedMessage* owed = nullptr;
  const bool ours = request && out.prepare(buffer, count, entry, peer, comm, largest_count<Count>);
  const bool kept = ours && (!out.packs() || (owed = new_owed_message()));
  if (!kept) out.refuse_on_gpu();
  if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(persistent_form<slot>)>>) {
    if (kept && !out.refused() && out.staging() && out.staging()->size() <= longest_posted) [[unlikely]] {
      if (reporting()) note(id, out, watch.seconds());
      owed->out = std::move(out);
      return post_send<persistent_form<slot>, Count>(owed, peer, tag, comm, request);
    }
  }
  // In the order of the calls.
  start_posted();
  if (kept) out.fill();
  if (out.refused()) [[unlikely]] {
    delete owed;
    return out.raise();
  }
  if (kept) {
    buffer = out.buffer();
    count = static_cast<Count>(out.count());
    type = out.type();
  }
  const int error = (next.*slot)(buffer, count, type, peer, tag, comm, request);
  if (reporting()) [[unlikely]] note(id, out, watch.seconds());
  if (owed) owed->out = std::move(out);
  hang_or_forget(owed, error, request);
  if (error == MPI_SUCCESS) runtime().comms.note(comm);
  return error;
}

/// MPI_Irecv and MPI_Imrecv: `call` makes the call with (buffer, count, type).
template <class Count, class Call>
int ireceive(CallId id, void* buffer, Count count, TypeEntry* entry, MPI_Datatype type, int peer, MPI_Comm comm,
             MPI_Request* request, Call call) {
  const Stopwatch watch(reporting());
  Incoming in;
  OwedMessage* owed = nullptr;
  const bool ours = request && in.prepare(buffer, count, entry, peer, comm, largest_count<Count>);
  const bool kept = ours && (!in.packs() || (owed = new_owed_message()));
  if (!kept) in.refuse_on_gpu();
  if (in.refused()) [[unlikely]] return in.raise();
  if (kept) {
    buffer = in.buffer();
    count = static_cast<Count>(in.count());
    type = in.type();
  }
  const int error = call(buffer, count, type);
  if (reporting()) [[unlikely]] note(id, in, watch.seconds());
  if (owed) owed->in = std::move(in);
  hang_or_forget(owed, error, request);
  if (error == MPI_SUCCESS && comm != MPI_COMM_NULL) runtime().comms.note(comm);
  return error;
}

template <auto slot, class Count>
int irecv(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = worth_a_look(type, count, CallKind::irecv, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  return ireceive(id, buffer, count, entry, type, peer, comm, request,
                  [&](void* b, Count n, MPI_Datatype t) { return (next.*slot)(b, n, t, peer, tag, comm, request); });
}

template <auto slot, class Count>
int imrecv(CallId id, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  TypeEntry* entry = worth_a_look(type, count, CallKind::irecv, MPI_ANY_SOURCE, MPI_COMM_NULL);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, message, request);
  }
  return ireceive(id, buffer, count, entry, type, MPI_ANY_SOURCE, MPI_COMM_NULL, request,
                  [&](void* b, Count n, MPI_Datatype t) { return (next.*slot)(b, n, t, message, request); });
}

/// MPICH 4.0.2 does not fill in the status of MPI_Isendrecv and MPI_Isendrecv_replace: what is received is OwedMessage::whole. And it frees a
/// derived type given to one of them once too often: it gets none of ours.
constexpr Manner no_spelling{.spelling = false};

template <auto slot, class Count>
int isendrecv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag,
              void* receive_buffer, Count receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
              MPI_Request* request) {
  TypeEntry* send_entry = gpu_in_play() ? any_type(send_type) : worth_a_look(send_type);
  TypeEntry* receive_entry = gpu_in_play() ? any_type(receive_type) : worth_a_look(receive_type);
  if (!send_entry && !receive_entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, send_count, send_type);
    return (next.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type, from,
                        receive_tag, comm, request);
  }
  const Stopwatch watch(reporting());
  OwedMessage* owed = request ? new_owed_message() : nullptr;
  if (owed) {
    if (send_entry && owed->out.prepare(send_buffer, send_count, send_entry, to, comm, largest_count<Count>, no_spelling)) {
      owed->out.fill();
      send_buffer = owed->out.buffer();
      send_count = static_cast<Count>(owed->out.count());
      send_type = owed->out.type();
    }
    if (receive_entry && owed->in.prepare(receive_buffer, receive_count, receive_entry, from, comm, largest_count<Count>, no_spelling)) {
      owed->in.fill();
      owed->whole = true;
      receive_buffer = owed->in.buffer();
      receive_count = static_cast<Count>(owed->in.count());
      receive_type = owed->in.type();
    }
    if (owed->refused()) [[unlikely]] {
      const int error = owed->raise();
      delete owed;
      return error;
    }
  } else if (gpu_in_play()) {
    for (const Place& place : {find_place(send_buffer, send_count, send_entry), find_place(receive_buffer, receive_count, receive_entry)})
      if (request && place.by_gpu) return raise(comm);
  }
  const int error = (next.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type,
                                 from, receive_tag, comm, request);
  if (reporting() && owed) [[unlikely]] {
    note(id, owed->out, watch.seconds());
    note(id, owed->in, 0);
  }
  hang_or_forget(owed, error, request);
  if (error == MPI_SUCCESS) runtime().comms.note(comm);
  return error;
}

template <auto slot, class Count>
int isendrecv_replace(CallId id, void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag,
                      MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = gpu_in_play() ? any_type(type) : worth_a_look(type);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, request);
  }
  const Stopwatch watch(reporting());
  OwedMessage* owed = request ? new_owed_message() : nullptr;
  if (owed && owed->in.prepare(buffer, count, entry, from == MPI_PROC_NULL ? to : from, comm, largest_count<Count>, no_spelling)) {
    owed->in.fill();
    owed->whole = true;
    buffer = owed->in.buffer();
    count = static_cast<Count>(owed->in.count());
    type = owed->in.type();
  }
  if (owed && owed->refused()) [[unlikely]] {
    const int error = owed->raise();
    delete owed;
    return error;
  }
  if (!owed && request && gpu_in_play() && find_place(buffer, count, entry).by_gpu) return raise(comm);
  const int error = (next.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, request);
  if (reporting() && owed) [[unlikely]] note(id, owed->in, watch.seconds());
  hang_or_forget(owed, error, request);
  if (error == MPI_SUCCESS) runtime().comms.note(comm);
  return error;
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_NONBLOCKING_ENTRIES(suffix, Count) \
  BESTRIDE_MESSAGE_ENTRY(Isend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Issend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Ibsend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Irsend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Irecv##suffix, irecv, void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MATCHED_ENTRY(Imrecv##suffix, imrecv, Count, (, MPI_Request * request), (, request))
#define BESTRIDE_ISENDRECV_ENTRIES(suffix, Count) \
  BESTRIDE_SENDRECV_ENTRY(Isendrecv##suffix, isendrecv, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_REPLACE_ENTRY(Isendrecv_replace##suffix, isendrecv_replace, Count, (, MPI_Request * request), (, request))

BESTRIDE_NONBLOCKING_ENTRIES(, int)
#if MPI_VERSION >= 4
BESTRIDE_NONBLOCKING_ENTRIES(_c, MPI_Count)
BESTRIDE_ISENDRECV_ENTRIES(, int)
BESTRIDE_ISENDRECV_ENTRIES(_c, MPI_Count)
#endif
