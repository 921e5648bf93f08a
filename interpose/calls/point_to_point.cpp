// SPDX-License-Identifier: Apache-2.0
// Blocking sends and receives: prepare the endpoints, make the call, complete the endpoints.
#include <cstddef>
#include <type_traits>

#include "interpose/calls/entry.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/message/report_entry.hpp"

namespace bestride::inline interpose {
namespace {

constexpr CallTraits blocks_alone{.blocks_alone = true, .engine = true};
constexpr CallTraits in_both_directions{.engine = true};

/// The entry of the nonblocking variant, used while collectives are in progress. There is none for MPI_Bsend, which
/// does not wait for other ranks. There is none for MPI_Sendrecv, which waits in the library while the progress thread
/// makes progress on the collectives (quirks::isendrecv_is_broken). MPI_Recv becomes a persistent request
/// (quirks::irecv_errors_are_of_world).
template <auto slot>
constexpr std::nullptr_t nonblocking_entry = nullptr;
#define BESTRIDE_NONBLOCKING_ENTRY(name, iname) \
  template <>                                   \
  constexpr auto nonblocking_entry<&Calls::name> = &bestride_entry_##iname;
BESTRIDE_NONBLOCKING_ENTRY(Send, Isend)
BESTRIDE_NONBLOCKING_ENTRY(Ssend, Issend)
BESTRIDE_NONBLOCKING_ENTRY(Rsend, Irsend)
BESTRIDE_NONBLOCKING_ENTRY(Recv, Recv_init)
BESTRIDE_NONBLOCKING_ENTRY(Mrecv, Imrecv)
#if MPI_VERSION >= 4
BESTRIDE_NONBLOCKING_ENTRY(Send_c, Isend_c)
BESTRIDE_NONBLOCKING_ENTRY(Ssend_c, Issend_c)
BESTRIDE_NONBLOCKING_ENTRY(Rsend_c, Irsend_c)
BESTRIDE_NONBLOCKING_ENTRY(Recv_c, Recv_init_c)
BESTRIDE_NONBLOCKING_ENTRY(Mrecv_c, Imrecv_c)
#endif

template <auto slot>
constexpr bool is_persistent_form = false;
template <>
constexpr bool is_persistent_form<&Calls::Recv> = true;
#if MPI_VERSION >= 4
template <>
constexpr bool is_persistent_form<&Calls::Recv_c> = true;
#endif

template <auto slot>
constexpr bool has_nonblocking_entry = !std::is_same_v<decltype(nonblocking_entry<slot>), const std::nullptr_t>;

/// Makes the call while collectives are pending. Not inlined, so that the usual path needs no stack frame for it. If an
/// error handler throws, the persistent request is not freed, which would hang (quirks::handlers_run_locked).
template <auto slot, class... Arguments>
[[gnu::noinline, gnu::cold]] int poll_nonblocking_form(MPI_Status* status, Arguments... arguments) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = nonblocking_entry<slot>(arguments..., &request);
  if (is_persistent_form<slot> && error == MPI_SUCCESS) error = bestride_entry_Start(&request);
  if (error == MPI_SUCCESS) error = bestride_entry_Wait(&request, status);
  if (is_persistent_form<slot> && request != MPI_REQUEST_NULL) bestride_entry_Request_free(&request);
  return error;
}

template <Calls& via, auto slot, class Count>
[[gnu::noinline]] int send_by_endpoint(CallId id, const void* buffer, Count count, TypeEntry* entry, MPI_Datatype type,
                                       int peer, int tag, MPI_Comm comm) {
  const Stopwatch watch(reporting());
  SendEndpoint out;
  constexpr CallTraits traits{.blocks_alone = true, .engine = !is_buffered<slot>};
  if (out.prepare(buffer, count, entry, peer, comm, largest_count<Count>, traits)) {
    out.fill();
    buffer = out.buffer();
    count = static_cast<Count>(out.count());
    type = out.type();
  }
  if (out.failed()) [[unlikely]]
    return out.raise_error();
  const int error = (via.*slot)(buffer, count, type, peer, tag, comm);
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  if (reporting()) [[unlikely]]
    record(id, out, watch.seconds());
  return error;
}

template <Calls& via, auto slot, class Count>
int send(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if constexpr (has_nonblocking_entry<slot>)
    if (any_collective_pending()) [[unlikely]]
      return poll_nonblocking_form<slot>(MPI_STATUS_IGNORE, buffer, count, type, peer, tag, comm);
  TypeEntry* entry = find_sender<slot>(type, count, CallKind::send, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, peer, tag, comm);
  }
  return send_by_endpoint<via, slot>(id, buffer, count, entry, type, peer, tag, comm);
}

/// MPI_Recv and MPI_Mrecv differ only in how they name the message: `call` makes the call with (buffer, count, type,
/// status).
template <class Count, class Call>
int receive(CallId id, void* buffer, Count count, TypeEntry* entry, int peer, MPI_Comm comm, MPI_Datatype type,
            MPI_Status* status, Call call) {
  const Stopwatch watch(reporting());
  ReceiveEndpoint in;
  int error;
  if (in.prepare(buffer, count, entry, peer, comm, largest_count<Count>, blocks_alone)) {
    MPI_Status own;
    if (in.wants_status() && status == MPI_STATUS_IGNORE) status = &own;
    error = call(in.buffer(), static_cast<Count>(in.count()), in.type(), status);
    if (error == MPI_SUCCESS && in.wants_status()) in.complete(*status);
    if (in.failed()) [[unlikely]]
      error = in.raise_error();
  } else if (in.failed()) {
    return in.raise_error();
  } else {
    error = call(buffer, count, type, status);
  }
  if (error == MPI_SUCCESS && comm != MPI_COMM_NULL) runtime().comms.add_valid(comm);
  if (reporting()) [[unlikely]]
    record(id, in, watch.seconds());
  return error;
}

template <Calls& via, auto slot, class Count>
int recv(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
         MPI_Status* status) {
  // A receive from MPI_PROC_NULL does not wait; and see quirks::irecv_from_null_has_no_status.
  if (any_collective_pending() && peer != MPI_PROC_NULL) [[unlikely]]
    return poll_nonblocking_form<slot>(status, buffer, count, type, peer, tag, comm);
  TypeEntry* entry = find_candidate(type, count, CallKind::receive, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, peer, tag, comm, status);
  }
  return receive(
      id, buffer, count, entry, peer, comm, type, status,
      [&](void* b, Count n, MPI_Datatype t, MPI_Status* s) { return (via.*slot)(b, n, t, peer, tag, comm, s); });
}

template <Calls& via, auto slot, class Count>
int mrecv(CallId id, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  if (any_collective_pending() && message && *message != MPI_MESSAGE_NO_PROC) [[unlikely]]
    return poll_nonblocking_form<slot>(status, buffer, count, type, message);
  TypeEntry* entry = find_candidate(type, count, CallKind::receive, MPI_ANY_SOURCE, MPI_COMM_NULL);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, message, status);
  }
  return receive(id, buffer, count, entry, MPI_ANY_SOURCE, MPI_COMM_NULL, type, status,
                 [&](void* b, Count n, MPI_Datatype t, MPI_Status* s) { return (via.*slot)(b, n, t, message, s); });
}

template <Calls& via, auto slot, class Count>
int sendrecv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag,
             void* receive_buffer, Count receive_count, MPI_Datatype receive_type, int from, int receive_tag,
             MPI_Comm comm, MPI_Status* status) {
  TypeEntry* send_entry = find_candidate(send_type, send_count, CallKind::isend, to, comm);
  TypeEntry* receive_entry = find_candidate(receive_type, receive_count, CallKind::irecv, from, comm);
  if (!send_entry && !receive_entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, send_count, send_type);
    return (via.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type,
                       from, receive_tag, comm, status);
  }
  const Stopwatch watch(reporting());
  SendEndpoint out;
  ReceiveEndpoint in;
  MPI_Status own;
  if (send_entry &&
      out.prepare(send_buffer, send_count, send_entry, to, comm, largest_count<Count>, in_both_directions)) {
    out.fill();
    send_buffer = out.buffer();
    send_count = static_cast<Count>(out.count());
    send_type = out.type();
  }
  if (receive_entry &&
      in.prepare(receive_buffer, receive_count, receive_entry, from, comm, largest_count<Count>, in_both_directions)) {
    receive_buffer = in.buffer();
    receive_count = static_cast<Count>(in.count());
    receive_type = in.type();
    if (in.wants_status() && status == MPI_STATUS_IGNORE) status = &own;
  }
  if (out.failed() || in.failed()) [[unlikely]]
    return out.failed() ? out.raise_error() : in.raise_error();
  int error = (via.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type,
                          from, receive_tag, comm, status);
  if (error == MPI_SUCCESS) {
    if (in.wants_status()) in.complete(*status);
    runtime().comms.add_valid(comm);
    if (in.failed()) [[unlikely]]
      error = in.raise_error();
  }
  if (reporting()) [[unlikely]] {
    record(id, out, watch.seconds());
    record(id, in, 0);
  }
  return error;
}

/// For MPI_Sendrecv_replace: the matching MPI_Sendrecv.
template <auto slot>
constexpr auto with_two_buffers = &Calls::Sendrecv;
#if MPI_VERSION >= 4
template <>
constexpr auto with_two_buffers<&Calls::Sendrecv_replace_c> = &Calls::Sendrecv_c;
#endif

/// If a packing buffer receives the message, the outgoing one is sent from the user's buffer, and the strategy is
/// chosen separately for each direction.
template <Calls& via, auto slot, class Count>
int sendrecv_replace(CallId id, void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from,
                     int receive_tag, MPI_Comm comm, MPI_Status* status) {
  TypeEntry* entry = gpu_runtime_detected() ? type_entry_or_opaque(type) : find_candidate(type);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  }
  const Stopwatch watch(reporting());
  ReceiveEndpoint in;
  SendEndpoint out;
  MPI_Status own;
  int error;
  // The non-null peer determines the distance.
  const bool ours = in.prepare(buffer, count, entry, from == MPI_PROC_NULL ? to : from, comm, largest_count<Count>);
  if (in.failed()) [[unlikely]]
    return in.raise_error();
  if (ours && in.packs()) {
    const void* sent = buffer;
    Count sent_count = count;
    MPI_Datatype sent_type = type;
    if (out.prepare(buffer, count, entry, to, comm, largest_count<Count>)) {
      out.fill();
      sent = out.buffer();
      sent_count = static_cast<Count>(out.count());
      sent_type = out.type();
    }
    if (out.failed()) [[unlikely]]
      return out.raise_error();
    if (status == MPI_STATUS_IGNORE) status = &own;
    error = (via.*with_two_buffers<slot>)(sent, sent_count, sent_type, to, send_tag, in.buffer(),
                                          static_cast<Count>(in.count()), in.type(), from, receive_tag, comm, status);
    if (error == MPI_SUCCESS) in.complete(*status);
  } else if (ours) {
    error = (via.*slot)(in.buffer(), static_cast<Count>(in.count()), in.type(), to, send_tag, from, receive_tag, comm,
                        status);
  } else {
    error = (via.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, status);
  }
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  if (error == MPI_SUCCESS && in.failed()) [[unlikely]]
    error = in.raise_error();
  if (reporting()) [[unlikely]] {
    record(id, in, watch.seconds());
    if (out.plan()) record(id, out, 0);
  }
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_BLOCKING_ENTRIES(suffix, Count)                                                  \
  BESTRIDE_MESSAGE_ENTRY(Send##suffix, send, const void*, Count, (), ())                          \
  BESTRIDE_MESSAGE_ENTRY(Ssend##suffix, send, const void*, Count, (), ())                         \
  BESTRIDE_MESSAGE_ENTRY(Bsend##suffix, send, const void*, Count, (), ())                         \
  BESTRIDE_MESSAGE_ENTRY(Rsend##suffix, send, const void*, Count, (), ())                         \
  BESTRIDE_MESSAGE_ENTRY(Recv##suffix, recv, void*, Count, (, MPI_Status * status), (, status))   \
  BESTRIDE_MATCHED_ENTRY(Mrecv##suffix, mrecv, Count, (, MPI_Status * status), (, status))        \
  BESTRIDE_SENDRECV_ENTRY(Sendrecv##suffix, sendrecv, Count, (, MPI_Status * status), (, status)) \
  BESTRIDE_REPLACE_ENTRY(Sendrecv_replace##suffix, sendrecv_replace, Count, (, MPI_Status * status), (, status))

BESTRIDE_BLOCKING_ENTRIES(, int)
BESTRIDE_BLOCKING_ENTRIES(_c, MPI_Count)
