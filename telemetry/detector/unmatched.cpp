// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/unmatched.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {
namespace {

/// The sender's last calls that are looked at. The receiver's are all of those in its snapshot, which reach back
/// further.
constexpr std::size_t last_calls = 16;

struct Envelope {
  std::uint64_t uid;  ///< of the communicator
  std::int32_t peer;  ///< rank in it, or any_rank
  std::int32_t tag;
};

std::uint64_t uid_of(const RankSnapshot& rank, std::uint32_t communicator) {
  const CommunicatorSnapshot* const known = rank.communicator(communicator);
  return known ? known->uid : 0;
}

/// The rank of a process in a communicator; no_rank if it is not a member.
std::int32_t rank_in(const RankSnapshot& rank, std::uint64_t uid) {
  for (const CommunicatorSnapshot& communicator : rank.communicators)
    if (communicator.uid == uid) return communicator.rank;
  return no_rank;
}

/// Calls visit(send or receive, envelope) for the messages of a call.
template <class Visit>
void each_message(const RankSnapshot& rank, const CallSnapshot& call, Visit visit) {
  if (call.ordinal != 0) return;
  const CallKind kind = kind_of(call.function, false);
  const std::uint64_t uid = uid_of(rank, call.communicator);
  if (kind == CallKind::exchange) {
    visit(CallKind::send, Envelope{uid, call.peer, call.tag});
    visit(CallKind::receive, Envelope{uid, call.second_peer, call.second_tag});
  } else if (kind == CallKind::send || kind == CallKind::receive) {
    visit(kind, Envelope{uid, call.peer, call.tag});
  }
}

struct Receives {
  std::vector<Envelope> posted;   ///< finished, present and requests
  std::vector<Envelope> awaited;  ///< those in which a thread is, or for which one waits
};

Receives receives_of(const RankSnapshot& rank) {
  Receives result;
  for (const ThreadSnapshot& thread : rank.threads) {
    const auto post = [&](CallKind kind, const Envelope& envelope) {
      if (kind == CallKind::receive) result.posted.push_back(envelope);
    };
    for (const CallSnapshot& call : thread.finished) each_message(rank, call, post);
    if (!thread.current) continue;
    each_message(rank, *thread.current, post);
    each_message(rank, *thread.current, [&](CallKind kind, const Envelope& envelope) {
      if (kind == CallKind::receive) result.awaited.push_back(envelope);
    });
  }
  for (const RequestSnapshot& request : rank.requests) {
    if (kind_of(request.function, request.ordinal != 0) != CallKind::receive) continue;
    const Envelope envelope{uid_of(rank, request.communicator), request.peer, request.tag};
    result.posted.push_back(envelope);
    if (request.waiter != 0) result.awaited.push_back(envelope);
  }
  return result;
}

bool takes(const Envelope& receive, std::uint64_t uid, std::int32_t from, std::int32_t tag) {
  return receive.uid == uid && (receive.peer == from || receive.peer == any_rank) &&
         (receive.tag == tag || receive.tag == any_tag);
}

}  // namespace

std::optional<TagMismatch> find_tag_mismatch(const RankSnapshot& sender, const RankSnapshot& receiver) {
  const Receives receives = receives_of(receiver);
  std::optional<TagMismatch> found;
  const auto look = [&](CallKind kind, const Envelope& sent) {
    if (kind != CallKind::send || sent.uid == 0 || sent.peer != rank_in(receiver, sent.uid)) return;
    const std::int32_t from = rank_in(sender, sent.uid);
    for (const Envelope& posted : receives.posted)
      if (takes(posted, sent.uid, from, sent.tag)) return;
    for (const Envelope& awaited : receives.awaited)
      if (awaited.uid == sent.uid && (awaited.peer == from || awaited.peer == any_rank))
        found = TagMismatch{sender.world_rank, receiver.world_rank, sent.tag, awaited.tag};
  };
  for (const ThreadSnapshot& thread : sender.threads) {
    const std::size_t count = thread.finished.size();
    for (std::size_t i = count - std::min(count, last_calls); i < count; ++i)
      each_message(sender, thread.finished[i], look);
    if (thread.current) each_message(sender, *thread.current, look);
  }
  return found;
}

bool has_unreceived_messages(const RankSnapshot& sender, const RankSnapshot& receiver) {
  for (const ThreadSnapshot& thread : receiver.threads)
    for (const CallSnapshot& call : thread.finished)
      if (kind_of(call.function, call.ordinal != 0) == CallKind::receive && call.peer == any_rank &&
          function_name(call.function).find("probe") == std::string::npos &&
          function_name(call.function).find("Probe") == std::string::npos)
        return false;
  std::uint64_t sent = 0, received = 0;
  for (const PeerSnapshot& peer : sender.peers)
    if (peer.communicator == no_index && static_cast<std::int32_t>(peer.rank) == receiver.world_rank)
      sent += peer.sent_messages;
  for (const PeerSnapshot& peer : receiver.peers)
    if (peer.communicator == no_index && static_cast<std::int32_t>(peer.rank) == sender.world_rank)
      received += peer.received_messages;
  return sent > received;
}

}  // namespace bestride::inline telemetry
