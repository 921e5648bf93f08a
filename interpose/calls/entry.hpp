// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries: the functions to which the preload library's slots jump. They are declared with the types of the MPI
// functions, so that the compiler rejects a definition whose arguments differ from the header (C linkage allows one
// type per name).
#include <mpi.h>

#include "interpose/collectives/pending.hpp"
#include "interpose/device/deferred_sends.hpp"
#include "interpose/device/detection.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/message/record.hpp"
#include "interpose/mpi/functions.hpp"

extern "C" {
#define BESTRIDE_INTERCEPT(name) decltype(PMPI_##name) bestride_entry_##name;
#define BESTRIDE_INTERCEPT_BOTH(name)          \
  decltype(PMPI_##name) bestride_entry_##name; \
  decltype(PMPI_##name) bestride_profiling_entry_##name;
#include "interpose/mpi/intercepted.def"
}

#define BESTRIDE_UNWRAP(...) __VA_ARGS__

namespace bestride::inline interpose {

/// True for calls before which deferred sends (interpose/device/deferred_sends.hpp) need not be started: local calls,
/// receives, and sends, which start them themselves if needed.
constexpr bool keeps_sends_deferred(CallId id) noexcept {
  switch (id) {
    case CallId::Isend:
    case CallId::Issend:
    case CallId::Ibsend:
    case CallId::Irsend:
    case CallId::Irecv:
    case CallId::Imrecv:
    case CallId::Send_init:
    case CallId::Ssend_init:
    case CallId::Bsend_init:
    case CallId::Rsend_init:
    case CallId::Recv_init:
    case CallId::Pack:
    case CallId::Unpack:
    case CallId::Type_commit:
    case CallId::Type_dup:
    case CallId::Type_free:
#if MPI_VERSION >= 4
    case CallId::Isend_c:
    case CallId::Issend_c:
    case CallId::Ibsend_c:
    case CallId::Irsend_c:
    case CallId::Irecv_c:
    case CallId::Imrecv_c:
    case CallId::Send_init_c:
    case CallId::Ssend_init_c:
    case CallId::Bsend_init_c:
    case CallId::Rsend_init_c:
    case CallId::Recv_init_c:
    case CallId::Pack_c:
    case CallId::Unpack_c:
#endif
      return true;
    default: return false;
  }
}
template <CallId id>
inline void before_call() noexcept {
  progress_pending_collectives();
  if constexpr (!keeps_sends_deferred(id)) start_deferred_sends();
}
/// Like before_call(), for functions that the library may also call internally: it does not wait for
/// another thread that is starting deferred sends. The completion calls make sure that a request was started
/// (interpose/message/completion.hpp).
template <CallId id>
inline void before_either_call() noexcept {
  progress_pending_collectives();
  if constexpr (!keeps_sends_deferred(id))
    if (deferred_send_count.load(std::memory_order_acquire) != 0) [[unlikely]]
      start_deferred_sends_unless_busy();
}
/// True for a message for which an entry has nothing to do: nothing is pending, its type is no candidate and nothing is
/// reported. Calls no function, so that an entry can jump to the library with all arguments where they are.
[[gnu::always_inline]] inline bool leaves_at_once(MPI_Datatype type, std::int64_t count) noexcept {
  return !any_collective_pending() && deferred_send_count.load(std::memory_order_acquire) == 0 && no_gpu_runtime() &&
         !reporting() && !find_candidate_on_host(type, count);
}

}  // namespace bestride::inline interpose

/// Defines the entry of a function that is intercepted by its MPI_ name. `body` is a function template on the pointer
/// in Calls to which the call is forwarded. `parameters` and `arguments` are in parentheses.
#define BESTRIDE_ENTRY(name, body, parameters, arguments)               \
  extern "C" int bestride_entry_##name(BESTRIDE_UNWRAP parameters) {    \
    using namespace bestride;                                           \
    before_call<CallId::name>();                                        \
    return body<&Calls::name>(CallId::name, BESTRIDE_UNWRAP arguments); \
  }

/// Defines the two entries of a function that is intercepted by its MPI_ and its PMPI_ name. `body` is a function
/// template on the set of Calls (`next` or `real`) and on the pointer in Calls to which the call is forwarded.
#define BESTRIDE_ENTRY_PAIR(name, body, parameters, arguments)                 \
  extern "C" int bestride_entry_##name(BESTRIDE_UNWRAP parameters) {           \
    using namespace bestride;                                                  \
    before_either_call<CallId::name>();                                        \
    return body<next, &Calls::name>(CallId::name, BESTRIDE_UNWRAP arguments);  \
  }                                                                            \
  extern "C" int bestride_profiling_entry_##name(BESTRIDE_UNWRAP parameters) { \
    using namespace bestride;                                                  \
    before_either_call<CallId::name>();                                        \
    return body<real, &Calls::name>(CallId::name, BESTRIDE_UNWRAP arguments);  \
  }

// Messages: calls of one shape differ in the type of the count and in what follows the communicator or message: the
// parameters `rest` and their names `rest_names`, in parentheses, each preceded by a comma.
#define BESTRIDE_MESSAGE_ENTRY_OF(entry, calls, name, before, body, Buffer, Count, rest, rest_names)            \
  namespace {                                                                                                   \
  [[gnu::noinline]] int full_##entry(Buffer buffer, Count count, MPI_Datatype type, int peer, int tag,          \
                                     MPI_Comm comm BESTRIDE_UNWRAP rest) {                                      \
    using namespace bestride;                                                                                   \
    before<CallId::name>();                                                                                     \
    return BESTRIDE_UNWRAP body(CallId::name, buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names); \
  }                                                                                                             \
  }                                                                                                             \
  extern "C" int entry(Buffer buffer, Count count, MPI_Datatype type, int peer, int tag,                        \
                       MPI_Comm comm BESTRIDE_UNWRAP rest) {                                                    \
    using namespace bestride;                                                                                   \
    if (leaves_at_once(type, count)) [[likely]]                                                                 \
      return calls.name(buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names);                       \
    return full_##entry(buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names);                       \
  }
#define BESTRIDE_MESSAGE_ENTRY(name, body, Buffer, Count, rest, rest_names)                                            \
  BESTRIDE_MESSAGE_ENTRY_OF(bestride_entry_##name, next, name, before_call, (body<&Calls::name>), Buffer, Count, rest, \
                            rest_names)
#define BESTRIDE_MESSAGE_ENTRY_PAIR(name, body, Buffer, Count, rest, rest_names)                                       \
  BESTRIDE_MESSAGE_ENTRY_OF(bestride_entry_##name, next, name, before_either_call, (body<next, &Calls::name>), Buffer, \
                            Count, rest, rest_names)                                                                   \
  BESTRIDE_MESSAGE_ENTRY_OF(bestride_profiling_entry_##name, real, name, before_either_call,                           \
                            (body<real, &Calls::name>), Buffer, Count, rest, rest_names)
#define BESTRIDE_MATCHED_ENTRY_PAIR(name, body, Count, rest, rest_names)                                         \
  BESTRIDE_ENTRY_PAIR(name, body,                                                                                \
                      (void* buffer, Count count, MPI_Datatype type, MPI_Message* message BESTRIDE_UNWRAP rest), \
                      (buffer, count, type, message BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_SENDRECV_ENTRY_PAIR(name, body, Count, rest, rest_names)                                              \
  BESTRIDE_ENTRY_PAIR(                                                                                                 \
      name, body,                                                                                                      \
      (const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag, void* receive_buffer,  \
       Count receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm BESTRIDE_UNWRAP rest), \
      (send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type, from,            \
       receive_tag, comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_REPLACE_ENTRY_PAIR(name, body, Count, rest, rest_names)                                              \
  BESTRIDE_ENTRY_PAIR(name, body,                                                                                     \
                      (void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag, \
                       MPI_Comm comm BESTRIDE_UNWRAP rest),                                                           \
                      (buffer, count, type, to, send_tag, from, receive_tag, comm BESTRIDE_UNWRAP rest_names))

/// `entry(name, Count, Displacement, rest, rest_names)` for the forms of a collective, each with int counts and with
/// MPI_Count: MPI_Name and MPI_Iname; MPI_Name_init. `Displacement` is the type of the displacements of the v-forms.
#define BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name, Iname, Count, Displacement) \
  entry(Name, Count, Displacement, (), ()) entry(Iname, Count, Displacement, (, MPI_Request * request), (, request))
#if MPI_VERSION >= 4
#define BESTRIDE_COLLECTIVE_FORMS(entry, Name, Iname)        \
  BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name, Iname, int, int) \
  BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name##_c, Iname##_c, MPI_Count, MPI_Aint)
#define BESTRIDE_PERSISTENT_FORMS(entry, Name)                                              \
  entry(Name##_init, int, int, (, MPI_Info info, MPI_Request * request), (, info, request)) \
      entry(Name##_init_c, MPI_Count, MPI_Aint, (, MPI_Info info, MPI_Request * request), (, info, request))
#else
#define BESTRIDE_COLLECTIVE_FORMS(entry, Name, Iname) BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name, Iname, int, int)
#define BESTRIDE_PERSISTENT_FORMS(entry, Name)
#endif

/// Defines the entries of a function that is intercepted by both names. `body` is a function template on the Calls set
/// to which the call is forwarded.
#define BESTRIDE_BOTH_ENTRIES(name, parameters, body, arguments) \
  extern "C" int bestride_entry_##name parameters {              \
    ::bestride::before_either_call<::bestride::CallId::name>();  \
    return ::bestride::body<::bestride::next> arguments;         \
  }                                                              \
  extern "C" int bestride_profiling_entry_##name parameters {    \
    ::bestride::before_either_call<::bestride::CallId::name>();  \
    return ::bestride::body<::bestride::real> arguments;         \
  }
