// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sends and receives of calls and requests.
#include <cstdint>

#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {

struct Message {
  CallKind kind = CallKind::send;  ///< send or receive
  std::uint16_t function = no_function;
  std::uint32_t communicator = no_index;
  std::int32_t peer = no_rank;  ///< rank in the communicator, or any_rank
  std::int32_t tag = no_tag;
  std::uint64_t bytes = 0;
};

/// Calls visit(message) for the messages of a call: two for MPI_Sendrecv, none for a collective call.
template <class Visit>
void each_message(const CallSnapshot& call, Visit visit) {
  if (call.ordinal != 0) return;
  const CallKind kind = kind_of(call.function, false);
  if (kind == CallKind::exchange) {
    visit(Message{CallKind::send, call.function, call.communicator, call.peer, call.tag, call.bytes});
    visit(Message{CallKind::receive, call.function, call.communicator, call.second_peer, call.second_tag, 0});
  } else if (kind == CallKind::send || kind == CallKind::receive) {
    visit(Message{kind, call.function, call.communicator, call.peer, call.tag, call.bytes});
  }
}
template <class Visit>
void each_message(const RequestSnapshot& request, Visit visit) {
  const CallKind kind = kind_of(request.function, request.ordinal != 0);
  if (kind == CallKind::send || kind == CallKind::receive)
    visit(Message{kind, request.function, request.communicator, request.peer, request.tag, request.bytes});
}
/// Calls visit(message) for the messages that a thread probes in turn.
template <class Visit>
void each_polled_probe(const ThreadSnapshot& thread, Visit visit) {
  if (thread.polling)
    for (const ProbeSnapshot& probe : thread.probes)
      visit(Message{CallKind::receive, probe.function, probe.communicator, probe.peer, probe.tag, 0});
}
/// Calls visit(message) for the messages of the calls that a rank is in, or that it probes in turn.
template <class Visit>
void each_current_message(const RankSnapshot& rank, Visit visit) {
  for (const ThreadSnapshot& thread : rank.threads) {
    if (thread.current) each_message(*thread.current, visit);
    each_polled_probe(thread, visit);
  }
}
/// Calls visit(message) for the messages of the calls that a rank is in, that it has posted, or that it probes in turn.
template <class Visit>
void each_posted_message(const RankSnapshot& rank, Visit visit) {
  each_current_message(rank, visit);
  for (const RequestSnapshot& request : rank.requests) each_message(request, visit);
}

/// True if a receive with tag `receive` takes a message with tag `send`.
inline bool tags_match(std::int32_t send, std::int32_t receive) { return receive == any_tag || receive == send; }

}  // namespace bestride::inline telemetry
