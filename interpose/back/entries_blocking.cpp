// SPDX-License-Identifier: Apache-2.0
// Blocking sends and receives: prepare the sides, call, settle.
#include <cstddef>
#include <optional>
#include <type_traits>

#include "interpose/back/entries.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/sides.hpp"

namespace bestride {
namespace {

constexpr Manner alone{.alone = true};

/// The entry that does the same without waiting: for use while collectives are carried on. MPI_Bsend waits for nobody.
template <auto slot>
constexpr std::nullptr_t without_waiting = nullptr;
#define BESTRIDE_WITHOUT_WAITING(name, iname) \
  template <> \
  constexpr auto without_waiting<&Calls::name> = &bestride_entry_##iname;
BESTRIDE_WITHOUT_WAITING(Send, Isend)
BESTRIDE_WITHOUT_WAITING(Ssend, Issend)
BESTRIDE_WITHOUT_WAITING(Rsend, Irsend)
BESTRIDE_WITHOUT_WAITING(Recv, Irecv)
BESTRIDE_WITHOUT_WAITING(Mrecv, Imrecv)
#if MPI_VERSION >= 4
BESTRIDE_WITHOUT_WAITING(Send_c, Isend_c)
BESTRIDE_WITHOUT_WAITING(Ssend_c, Issend_c)
BESTRIDE_WITHOUT_WAITING(Rsend_c, Irsend_c)
BESTRIDE_WITHOUT_WAITING(Recv_c, Irecv_c)
BESTRIDE_WITHOUT_WAITING(Mrecv_c, Imrecv_c)
BESTRIDE_WITHOUT_WAITING(Sendrecv, Isendrecv)
BESTRIDE_WITHOUT_WAITING(Sendrecv_c, Isendrecv_c)
BESTRIDE_WITHOUT_WAITING(Sendrecv_replace, Isendrecv_replace)
BESTRIDE_WITHOUT_WAITING(Sendrecv_replace_c, Isendrecv_replace_c)
#endif

/// Nothing where the call may wait in the library.
template <auto slot, class... Arguments>
std::optional<int> in_turns(MPI_Status* status, Arguments... arguments) noexcept {
  if constexpr (!std::is_same_v<decltype(without_waiting<slot>), const std::nullptr_t>)
    if (any_collective_pending()) [[unlikely]] {
      MPI_Request request = MPI_REQUEST_NULL;
      const int error = without_waiting<slot>(arguments..., &request);
      return error == MPI_SUCCESS ? bestride_entry_Wait(&request, status) : error;
    }
  return std::nullopt;
}

template <auto slot, class Count>
int send(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if (const auto done = in_turns<slot>(MPI_STATUS_IGNORE, buffer, count, type, peer, tag, comm)) return *done;
  TypeEntry* entry = worth_a_look(type, count, CallKind::send, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, peer, tag, comm);
  }
  const Stopwatch watch(reporting());
  Outgoing out;
  int error;
  const bool ours = out.prepare(buffer, count, entry, peer, comm, largest_count<Count>, alone);
  if (ours) out.fill();
  if (out.refused()) [[unlikely]] return out.raise();
  if (ours) {
    error = (next.*slot)(out.buffer(), static_cast<Count>(out.count()), out.type(), peer, tag, comm);
  } else {
    error = (next.*slot)(buffer, count, type, peer, tag, comm);
  }
  if (error == MPI_SUCCESS) runtime().comms.note(comm);
  if (reporting()) [[unlikely]] note(id, out, watch.seconds());
  return error;
}

/// MPI_Recv and MPI_Mrecv differ only in how the message is named: `call` makes the call with (buffer, count, type, status).
template <class Count, class Call>
int receive(CallId id, void* buffer, Count count, TypeEntry* entry, int peer, MPI_Comm comm, MPI_Datatype type, MPI_Status* status,
            Call call) {
  const Stopwatch watch(reporting());
  Incoming in;
  int error;
  if (in.prepare(buffer, count, entry, peer, comm, largest_count<Count>, alone)) {
    MPI_Status own;
    if (in.wants_status() && status == MPI_STATUS_IGNORE) status = &own;
    error = call(in.buffer(), static_cast<Count>(in.count()), in.type(), status);
    if (error == MPI_SUCCESS && in.wants_status()) in.settle(*status);
    if (in.refused()) [[unlikely]] error = in.raise();
  } else if (in.refused()) {
    return in.raise();
  } else {
    error = call(buffer, count, type, status);
  }
  if (error == MPI_SUCCESS && comm != MPI_COMM_NULL) runtime().comms.note(comm);
  if (reporting()) [[unlikely]] note(id, in, watch.seconds());
  return error;
}

template <auto slot, class Count>
int recv(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  if (const auto done = in_turns<slot>(status, buffer, count, type, peer, tag, comm)) return *done;
  TypeEntry* entry = worth_a_look(type, count, CallKind::receive, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, peer, tag, comm, status);
  }
  return receive(id, buffer, count, entry, peer, comm, type, status, [&](void* b, Count n, MPI_Datatype t, MPI_Status* s) {
    return (next.*slot)(b, n, t, peer, tag, comm, s);
  });
}

template <auto slot, class Count>
int mrecv(CallId id, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  if (const auto done = in_turns<slot>(status, buffer, count, type, message)) return *done;
  TypeEntry* entry = worth_a_look(type, count, CallKind::receive, MPI_ANY_SOURCE, MPI_COMM_NULL);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, message, status);
  }
  return receive(id, buffer, count, entry, MPI_ANY_SOURCE, MPI_COMM_NULL, type, status,
                 [&](void* b, Count n, MPI_Datatype t, MPI_Status* s) { return (next.*slot)(b, n, t, message, s); });
}

template <auto slot, class Count>
int sendrecv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag,
             void* receive_buffer, Count receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
             MPI_Status* status) {
  if (const auto done = in_turns<slot>(status, send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type, from,
                                       receive_tag, comm))
    return *done;
  TypeEntry* send_entry = worth_a_look(send_type, send_count, CallKind::isend, to, comm);
  TypeEntry* receive_entry = worth_a_look(receive_type, receive_count, CallKind::irecv, from, comm);
  if (!send_entry && !receive_entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, send_count, send_type);
    return (next.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type, from,
                        receive_tag, comm, status);
  }
  const Stopwatch watch(reporting());
  Outgoing out;
  Incoming in;
  MPI_Status own;
  if (send_entry && out.prepare(send_buffer, send_count, send_entry, to, comm, largest_count<Count>)) {
    out.fill();
    send_buffer = out.buffer();
    send_count = static_cast<Count>(out.count());
    send_type = out.type();
  }
  if (receive_entry && in.prepare(receive_buffer, receive_count, receive_entry, from, comm, largest_count<Count>)) {
    receive_buffer = in.buffer();
    receive_count = static_cast<Count>(in.count());
    receive_type = in.type();
    if (in.wants_status() && status == MPI_STATUS_IGNORE) status = &own;
  }
  if (out.refused() || in.refused()) [[unlikely]] return out.refused() ? out.raise() : in.raise();
  int error = (next.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type,
                                 from, receive_tag, comm, status);
  if (error == MPI_SUCCESS) {
    if (in.wants_status()) in.settle(*status);
    runtime().comms.note(comm);
    if (in.refused()) [[unlikely]] error = in.raise();
  }
  if (reporting()) [[unlikely]] {
    note(id, out, watch.seconds());
    note(id, in, 0);
  }
  return error;
}

/// One buffer, so one side: what goes out is packed where what comes in will lie.
template <auto slot, class Count>
int sendrecv_replace(CallId id, void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag,
                     MPI_Comm comm, MPI_Status* status) {
  if (const auto done = in_turns<slot>(status, buffer, count, type, to, send_tag, from, receive_tag, comm)) return *done;
  TypeEntry* entry = gpu_in_play() ? any_type(type) : worth_a_look(type);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]] note_left_alone(id, count, type);
    return (next.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  }
  const Stopwatch watch(reporting());
  Incoming in;
  MPI_Status own;
  // The one that is not MPI_PROC_NULL says how far the message goes.
  if (in.prepare(buffer, count, entry, from == MPI_PROC_NULL ? to : from, comm, largest_count<Count>)) {
    in.fill();
    buffer = in.buffer();
    count = static_cast<Count>(in.count());
    type = in.type();
    if (in.wants_status() && status == MPI_STATUS_IGNORE) status = &own;
  }
  if (in.refused()) [[unlikely]] return in.raise();
  int error = (next.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  if (error == MPI_SUCCESS) {
    if (in.wants_status()) in.settle(*status);
    runtime().comms.note(comm);
    if (in.refused()) [[unlikely]] error = in.raise();
  }
  if (reporting()) [[unlikely]] note(id, in, watch.seconds());
  return error;
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_BLOCKING_ENTRIES(suffix, Count) \
  BESTRIDE_MESSAGE_ENTRY(Send##suffix, send, const void*, Count, (), ()) \
  BESTRIDE_MESSAGE_ENTRY(Ssend##suffix, send, const void*, Count, (), ()) \
  BESTRIDE_MESSAGE_ENTRY(Bsend##suffix, send, const void*, Count, (), ()) \
  BESTRIDE_MESSAGE_ENTRY(Rsend##suffix, send, const void*, Count, (), ()) \
  BESTRIDE_MESSAGE_ENTRY(Recv##suffix, recv, void*, Count, (, MPI_Status * status), (, status)) \
  BESTRIDE_MATCHED_ENTRY(Mrecv##suffix, mrecv, Count, (, MPI_Status * status), (, status)) \
  BESTRIDE_SENDRECV_ENTRY(Sendrecv##suffix, sendrecv, Count, (, MPI_Status * status), (, status)) \
  BESTRIDE_REPLACE_ENTRY(Sendrecv_replace##suffix, sendrecv_replace, Count, (, MPI_Status * status), (, status))

BESTRIDE_BLOCKING_ENTRIES(, int)
#if MPI_VERSION >= 4
BESTRIDE_BLOCKING_ENTRIES(_c, MPI_Count)
#endif
