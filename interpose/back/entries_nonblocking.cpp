// SPDX-License-Identifier: Apache-2.0
// Nonblocking sends and receives: the packed message is handed to MPI within the call, so its progress never depends on us; what
// is owed at completion hangs on the request. A respelled message owes nothing: MPI keeps the type it was given.
#include "interpose/back/entries.hpp"
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

template <auto slot, class Count>
int isend(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = worth_a_look(type, count, CallKind::isend, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  const Stopwatch watch(reporting());
  Outgoing out;
  OwedMessage* owed = nullptr;
  if (request && out.prepare(buffer, count, entry, peer, comm, largest_count<Count>) && (!out.packs() || (owed = new_owed_message()))) {
    out.fill();
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
  if (request && in.prepare(buffer, count, entry, peer, comm, largest_count<Count>) && (!in.packs() || (owed = new_owed_message()))) {
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

/// MPICH 4.0.2 frees a derived type given to MPI_Isendrecv or MPI_Isendrecv_replace once too often: it gets none of ours.
constexpr Manner no_spelling{.spelling = false};

template <auto slot, class Count>
int isendrecv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag,
              void* receive_buffer, Count receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
              MPI_Request* request) {
  TypeEntry* send_entry = worth_a_look(send_type);
  TypeEntry* receive_entry = worth_a_look(receive_type);
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
      receive_buffer = owed->in.buffer();
      receive_count = static_cast<Count>(owed->in.count());
      receive_type = owed->in.type();
    }
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
  TypeEntry* entry = worth_a_look(type);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, request);
  }
  const Stopwatch watch(reporting());
  OwedMessage* owed = request ? new_owed_message() : nullptr;
  if (owed && owed->in.prepare(buffer, count, entry, from == MPI_PROC_NULL ? to : from, comm, largest_count<Count>, no_spelling)) {
    owed->in.fill();
    buffer = owed->in.buffer();
    count = static_cast<Count>(owed->in.count());
    type = owed->in.type();
  }
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
