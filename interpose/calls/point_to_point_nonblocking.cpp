// SPDX-License-Identifier: Apache-2.0
// Nonblocking sends and receives. A packed message is passed to MPI within the call, so its progress never depends on
// Bestride; its completion is attached to the request. A respelled message needs no completion, because MPI keeps a
// reference to the type it was given.
#include <memory>
#include <type_traits>

#include "interpose/calls/entry.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/mpi/quirks.hpp"

namespace bestride::inline interpose {
namespace {

/// Call after the MPI call: attaches the completion to the request if one is needed, else deletes it.
void attach_or_discard(std::unique_ptr<MessageCompletion> completion, int error, const MPI_Request* request) noexcept {
  if (error == MPI_SUCCESS && completion && (completion->out.packs() || completion->in.packs()))
    attach(completion.release(), *request);
}

/// The persistent form of a nonblocking send. MPI_Ibsend has none here: its message is buffered within the call, also
/// for MPI_Buffer_detach.
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

/// Defers a short send of device memory (interpose/device/deferred_sends.hpp).
template <Calls& via, auto init, class Count>
int defer_device_send(std::unique_ptr<MessageCompletion> completion, int peer, int tag, MPI_Comm comm,
                      MPI_Request* request) {
  const SendEndpoint& out = completion->out;
  const int error = (via.*init)(out.buffer(), static_cast<Count>(out.count()), out.type(), peer, tag, comm, request);
  if (error != MPI_SUCCESS) return error;
  runtime().comms.add_valid(comm);
  completion->emulates_nonblocking = true;
  const StagingPtr staging = out.staging();
  // Attach the completion first: once the send is queued, another thread may start it, and it may fail.
  attach(completion.release(), *request);
  if (defer_send(*request, staging)) return MPI_SUCCESS;
  TransferBatch::move(staging, Direction::pack, 0, staging->size());
  MPI_Request now = *request;
  return staging->failed() ? MPI_SUCCESS : via.Start(&now);
}

template <Calls& via, auto slot, class Count>
int isend(CallId id, const void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
          MPI_Request* request) {
  TypeEntry* entry = find_sender<slot>(type, count, CallKind::isend, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    start_deferred_sends();
    return (via.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  const Stopwatch watch(reporting());
  SendEndpoint out;
  std::unique_ptr<MessageCompletion> completion;
  const bool ours =
      request && out.prepare(buffer, count, entry, peer, comm, largest_count<Count>, {.engine = !is_buffered<slot>});
  const bool kept =
      ours && (!out.packs() || (completion = std::unique_ptr<MessageCompletion>(new_message_completion())));
  if (!kept) out.refuse_device_memory();
  if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(persistent_form<slot>)>>) {
    if (kept && !out.failed() && out.staging() && out.staging()->size() <= longest_deferred_bytes) [[unlikely]] {
      if (reporting()) record(id, out, watch.seconds());
      completion->out = std::move(out);
      return defer_device_send<via, persistent_form<slot>, Count>(std::move(completion), peer, tag, comm, request);
    }
  }
  // Keeps the order of the calls.
  start_deferred_sends();
  if (kept) out.fill();
  if (out.failed()) [[unlikely]]
    return out.raise_error();
  if (kept) {
    buffer = out.buffer();
    count = static_cast<Count>(out.count());
    type = out.type();
  }
  const int error = (via.*slot)(buffer, count, type, peer, tag, comm, request);
  if (reporting()) [[unlikely]]
    record(id, out, watch.seconds());
  if (completion) completion->out = std::move(out);
  attach_or_discard(std::move(completion), error, request);
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  return error;
}

/// MPI_Irecv and MPI_Imrecv: `call` makes the call with (buffer, count, type).
template <class Count, class Call>
int ireceive(CallId id, void* buffer, Count count, TypeEntry* entry, MPI_Datatype type, int peer, MPI_Comm comm,
             MPI_Request* request, Call call) {
  const Stopwatch watch(reporting());
  ReceiveEndpoint in;
  std::unique_ptr<MessageCompletion> completion;
  const bool ours = request && in.prepare(buffer, count, entry, peer, comm, largest_count<Count>, {.engine = true});
  const bool kept =
      ours && (!in.packs() || (completion = std::unique_ptr<MessageCompletion>(new_message_completion())));
  if (!kept) in.refuse_device_memory();
  if (in.failed()) [[unlikely]]
    return in.raise_error();
  if (kept) {
    buffer = in.buffer();
    count = static_cast<Count>(in.count());
    type = in.type();
  }
  const int error = call(buffer, count, type);
  if (reporting()) [[unlikely]]
    record(id, in, watch.seconds());
  if (completion) completion->in = std::move(in);
  attach_or_discard(std::move(completion), error, request);
  if (error == MPI_SUCCESS && comm != MPI_COMM_NULL) runtime().comms.add_valid(comm);
  return error;
}

template <Calls& via, auto slot, class Count>
int irecv(CallId id, void* buffer, Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
          MPI_Request* request) {
  TypeEntry* entry = find_candidate(type, count, CallKind::irecv, peer, comm);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, peer, tag, comm, request);
  }
  return ireceive(id, buffer, count, entry, type, peer, comm, request,
                  [&](void* b, Count n, MPI_Datatype t) { return (via.*slot)(b, n, t, peer, tag, comm, request); });
}

template <Calls& via, auto slot, class Count>
int imrecv(CallId id, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  TypeEntry* entry = find_candidate(type, count, CallKind::irecv, MPI_ANY_SOURCE, MPI_COMM_NULL);
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return (via.*slot)(buffer, count, type, message, request);
  }
  return ireceive(id, buffer, count, entry, type, MPI_ANY_SOURCE, MPI_COMM_NULL, request,
                  [&](void* b, Count n, MPI_Datatype t) { return (via.*slot)(b, n, t, message, request); });
}

/// Of MPI_Isendrecv and MPI_Isendrecv_replace, whose receives also use MessageCompletion::whole.
constexpr CallTraits no_respelling{.allows_respelling = !quirks::isendrecv_is_broken};

template <Calls& via, auto slot, class Count>
int isendrecv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag,
              void* receive_buffer, Count receive_count, MPI_Datatype receive_type, int from, int receive_tag,
              MPI_Comm comm, MPI_Request* request) {
  TypeEntry* send_entry = gpu_runtime_detected() ? type_entry_or_opaque(send_type) : find_candidate(send_type);
  TypeEntry* receive_entry = gpu_runtime_detected() ? type_entry_or_opaque(receive_type) : find_candidate(receive_type);
  if (!send_entry && !receive_entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, send_count, send_type);
    return (via.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type,
                       from, receive_tag, comm, request);
  }
  const Stopwatch watch(reporting());
  std::unique_ptr<MessageCompletion> completion(request ? new_message_completion() : nullptr);
  if (completion) {
    if (send_entry &&
        completion->out.prepare(send_buffer, send_count, send_entry, to, comm, largest_count<Count>, no_respelling)) {
      completion->out.fill();
      send_buffer = completion->out.buffer();
      send_count = static_cast<Count>(completion->out.count());
      send_type = completion->out.type();
    }
    if (receive_entry && completion->in.prepare(receive_buffer, receive_count, receive_entry, from, comm,
                                                largest_count<Count>, no_respelling)) {
      completion->in.fill();
      completion->whole = true;
      receive_buffer = completion->in.buffer();
      receive_count = static_cast<Count>(completion->in.count());
      receive_type = completion->in.type();
    }
    if (completion->failed()) [[unlikely]]
      return completion->raise_error();
  } else if (gpu_runtime_detected()) {
    for (const BufferLocation& place : {locate_buffer(send_buffer, send_count, send_entry),
                                        locate_buffer(receive_buffer, receive_count, receive_entry)})
      if (request && place.needs_device) return raise_error(comm);
  }
  const int error = (via.*slot)(send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count,
                                receive_type, from, receive_tag, comm, request);
  if (reporting() && completion) [[unlikely]] {
    record(id, completion->out, watch.seconds());
    record(id, completion->in, 0);
  }
  attach_or_discard(std::move(completion), error, request);
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  return error;
}

/// For MPI_Isendrecv_replace: the matching MPI_Isendrecv.
template <auto slot>
constexpr auto nonblocking_with_two_buffers = nullptr;
#ifdef BESTRIDE_DECLARES_Isendrecv_replace
template <>
constexpr auto nonblocking_with_two_buffers<&Calls::Isendrecv_replace> = &Calls::Isendrecv;
#endif
#ifdef BESTRIDE_DECLARES_Isendrecv_replace_c
template <>
constexpr auto nonblocking_with_two_buffers<&Calls::Isendrecv_replace_c> = &Calls::Isendrecv_c;
#endif

/// If a packing buffer receives the message, the outgoing one is sent from the user's buffer or is packed, too.
template <Calls& via, auto slot, class Count>
int isendrecv_replace(CallId id, void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from,
                      int receive_tag, MPI_Comm comm, MPI_Request* request) {
  TypeEntry* entry = gpu_runtime_detected() ? type_entry_or_opaque(type) : find_candidate(type);
  const auto forwarded = [&] {
    return (via.*slot)(buffer, count, type, to, send_tag, from, receive_tag, comm, request);
  };
  if (!entry) [[likely]] {
    if (reporting()) [[unlikely]]
      record_forwarded(id, count, type);
    return forwarded();
  }
  const Stopwatch watch(reporting());
  std::unique_ptr<MessageCompletion> completion(request ? new_message_completion() : nullptr);
  const bool ours = completion &&
                    completion->in.prepare(buffer, count, entry, from == MPI_PROC_NULL ? to : from, comm,
                                           largest_count<Count>, no_respelling) &&
                    completion->in.packs();
  if (completion && completion->failed()) [[unlikely]]
    return completion->raise_error();
  if (!completion && request && gpu_runtime_detected() && locate_buffer(buffer, count, entry).needs_device)
    return raise_error(comm);
  int error;
  if (ours) {
    const void* sent = buffer;
    Count sent_count = count;
    MPI_Datatype sent_type = type;
    if (completion->out.prepare(buffer, count, entry, to, comm, largest_count<Count>, no_respelling)) {
      completion->out.fill();
      sent = completion->out.buffer();
      sent_count = static_cast<Count>(completion->out.count());
      sent_type = completion->out.type();
    }
    completion->in.fill();
    completion->whole = true;
    if (completion->failed()) [[unlikely]]
      return completion->raise_error();
    error =
        (via.*nonblocking_with_two_buffers<slot>)(sent, sent_count, sent_type, to, send_tag, completion->in.buffer(),
                                                  static_cast<Count>(completion->in.count()), completion->in.type(),
                                                  from, receive_tag, comm, request);
  } else {
    error = forwarded();
  }
  if (reporting() && completion) [[unlikely]]
    record(id, completion->in, watch.seconds());
  attach_or_discard(std::move(completion), error, request);
  if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_NONBLOCKING_ENTRIES(suffix, Count)                                                         \
  BESTRIDE_MESSAGE_ENTRY(Isend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request))  \
  BESTRIDE_MESSAGE_ENTRY(Issend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Ibsend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Irsend##suffix, isend, const void*, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_MESSAGE_ENTRY(Irecv##suffix, irecv, void*, Count, (, MPI_Request * request), (, request))        \
  BESTRIDE_MATCHED_ENTRY(Imrecv##suffix, imrecv, Count, (, MPI_Request * request), (, request))
#define BESTRIDE_ISENDRECV_ENTRIES(suffix, Count)                                                      \
  BESTRIDE_SENDRECV_ENTRY(Isendrecv##suffix, isendrecv, Count, (, MPI_Request * request), (, request)) \
  BESTRIDE_REPLACE_ENTRY(Isendrecv_replace##suffix, isendrecv_replace, Count, (, MPI_Request * request), (, request))

BESTRIDE_NONBLOCKING_ENTRIES(, int)
BESTRIDE_NONBLOCKING_ENTRIES(_c, MPI_Count)
BESTRIDE_ISENDRECV_ENTRIES(, int)
BESTRIDE_ISENDRECV_ENTRIES(_c, MPI_Count)
