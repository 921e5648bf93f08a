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
#include "interpose/message/report_entry.hpp"
#include "interpose/mpi/functions.hpp"

extern "C" {
#define BESTRIDE_FROM_START(name, ...)                                      \
  BESTRIDE_BY_MPI_NAME_##name(decltype(PMPI_##name) bestride_entry_##name;) \
      BESTRIDE_BY_PMPI_NAME_##name(decltype(PMPI_##name) bestride_profiling_entry_##name;)
#define BESTRIDE_FUNCTION(...)
#include "mpi_functions.inc"
}

#define BESTRIDE_UNWRAP(...) __VA_ARGS__

namespace bestride::inline interpose {

/// Advances pending collectives and starts deferred sends (interpose/device/deferred_sends.hpp), as far as the table
/// says for this call. A call that is intercepted by both names may also come from inside the library. The completion
/// calls make sure that a request was started (interpose/message/completion.hpp).
template <CallId id>
inline void before_call() noexcept {
  progress_pending_collectives();
  if constexpr (starts_deferred_sends(id)) {
    if constexpr (!by_both_names(id))
      start_deferred_sends();
    else if (deferred_send_count.load(std::memory_order_acquire) != 0) [[unlikely]]
      start_deferred_sends_unless_busy();
  }
}
/// True for a message for which an entry has nothing to do: nothing is pending, its type is no candidate and nothing is
/// reported. Calls no function, so that an entry can jump to the library with all arguments where they are.
[[gnu::always_inline]] inline bool leaves_at_once(MPI_Datatype type, std::int64_t count) noexcept {
  return !any_collective_pending() && deferred_send_count.load(std::memory_order_acquire) == 0 && no_gpu_runtime() &&
         !reporting() && !find_candidate_on_host(type, count);
}

}  // namespace bestride::inline interpose

/// Defines the entries of MPI_name, one for each name by which it is intercepted. `define(entry, calls, name, ...)`
/// defines one of them; `calls` is the Calls set to which it forwards.
#define BESTRIDE_DEFINE_ENTRIES(name, define, ...)                                    \
  BESTRIDE_CHECK_ROW(name)                                                            \
  BESTRIDE_BY_MPI_NAME_##name(define(bestride_entry_##name, next, name, __VA_ARGS__)) \
      BESTRIDE_BY_PMPI_NAME_##name(define(bestride_profiling_entry_##name, real, name, __VA_ARGS__))

/// `body` is a function template on the Calls set and on the pointer in it. `parameters` and `arguments` are in
/// parentheses.
#define BESTRIDE_ENTRY(name, body, parameters, arguments) \
  BESTRIDE_DEFINE_ENTRIES(name, BESTRIDE_ENTRY_OF, body, parameters, arguments)
#define BESTRIDE_ENTRY_OF(entry, calls, name, body, parameters, arguments)     \
  extern "C" int entry(BESTRIDE_UNWRAP parameters) {                           \
    using namespace bestride;                                                  \
    before_call<CallId::name>();                                               \
    return body<calls, &Calls::name>(CallId::name, BESTRIDE_UNWRAP arguments); \
  }
/// The same for a body that is a template on the Calls set alone.
#define BESTRIDE_PLAIN_ENTRY(name, parameters, body, arguments) \
  BESTRIDE_DEFINE_ENTRIES(name, BESTRIDE_PLAIN_ENTRY_OF, parameters, body, arguments)
#define BESTRIDE_PLAIN_ENTRY_OF(entry, calls, name, parameters, body, arguments) \
  extern "C" int entry parameters {                                              \
    ::bestride::before_call<::bestride::CallId::name>();                         \
    return ::bestride::body<::bestride::calls> arguments;                        \
  }

// Messages: calls of one shape differ in the type of the count and in what follows the communicator or message: the
// parameters `rest` and their names `rest_names`, in parentheses, each preceded by a comma.
#define BESTRIDE_MESSAGE_ENTRY(name, body, Buffer, Count, rest, rest_names) \
  BESTRIDE_DEFINE_ENTRIES(name, BESTRIDE_MESSAGE_ENTRY_OF, body, Buffer, Count, rest, rest_names)
#define BESTRIDE_MESSAGE_ENTRY_OF(entry, calls, name, body, Buffer, Count, rest, rest_names)                         \
  namespace {                                                                                                        \
  [[gnu::noinline]] int full_##entry(Buffer buffer, Count count, MPI_Datatype type, int peer, int tag,               \
                                     MPI_Comm comm BESTRIDE_UNWRAP rest) {                                           \
    using namespace bestride;                                                                                        \
    before_call<CallId::name>();                                                                                     \
    return body<calls, &Calls::name>(CallId::name, buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names); \
  }                                                                                                                  \
  }                                                                                                                  \
  extern "C" int entry(Buffer buffer, Count count, MPI_Datatype type, int peer, int tag,                             \
                       MPI_Comm comm BESTRIDE_UNWRAP rest) {                                                         \
    using namespace bestride;                                                                                        \
    if (leaves_at_once(type, count)) [[likely]]                                                                      \
      return calls.name(buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names);                            \
    return full_##entry(buffer, count, type, peer, tag, comm BESTRIDE_UNWRAP rest_names);                            \
  }
#define BESTRIDE_MATCHED_ENTRY(name, body, Count, rest, rest_names)                                         \
  BESTRIDE_ENTRY(name, body,                                                                                \
                 (void* buffer, Count count, MPI_Datatype type, MPI_Message* message BESTRIDE_UNWRAP rest), \
                 (buffer, count, type, message BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_SENDRECV_ENTRY(name, body, Count, rest, rest_names)                                                   \
  BESTRIDE_ENTRY(                                                                                                      \
      name, body,                                                                                                      \
      (const void* send_buffer, Count send_count, MPI_Datatype send_type, int to, int send_tag, void* receive_buffer,  \
       Count receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm BESTRIDE_UNWRAP rest), \
      (send_buffer, send_count, send_type, to, send_tag, receive_buffer, receive_count, receive_type, from,            \
       receive_tag, comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_REPLACE_ENTRY(name, body, Count, rest, rest_names)                                              \
  BESTRIDE_ENTRY(name, body,                                                                                     \
                 (void* buffer, Count count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag, \
                  MPI_Comm comm BESTRIDE_UNWRAP rest),                                                           \
                 (buffer, count, type, to, send_tag, from, receive_tag, comm BESTRIDE_UNWRAP rest_names))

/// `entry(name, Count, Displacement, rest, rest_names)` for the forms of a collective, each with int counts and with
/// MPI_Count: MPI_Name and MPI_Iname; MPI_Name_init. `Displacement` is the type of the displacements of the v-forms.
#define BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name, Iname, Count, Displacement) \
  entry(Name, Count, Displacement, (), ()) entry(Iname, Count, Displacement, (, MPI_Request * request), (, request))
#define BESTRIDE_COLLECTIVE_FORMS(entry, Name, Iname)        \
  BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name, Iname, int, int) \
  BESTRIDE_COLLECTIVE_FORMS_OF(entry, Name##_c, Iname##_c, MPI_Count, MPI_Aint)
#define BESTRIDE_PERSISTENT_FORMS(entry, Name)                                              \
  entry(Name##_init, int, int, (, MPI_Info info, MPI_Request * request), (, info, request)) \
      entry(Name##_init_c, MPI_Count, MPI_Aint, (, MPI_Info info, MPI_Request * request), (, info, request))
