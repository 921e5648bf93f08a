// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/message_numbers.hpp"

#include <algorithm>

#include "telemetry/waits/messages.hpp"

namespace bestride::inline telemetry {
namespace {

/// Counted messages of `rank` to, or from, a rank of MPI_COMM_WORLD.
std::int64_t counted(const RankSnapshot& rank, std::int32_t peer, CallKind kind) {
  for (const PeerSnapshot& known : rank.peers)
    if (known.communicator == no_index && static_cast<std::int32_t>(known.rank) == peer)
      return static_cast<std::int64_t>(kind == CallKind::send ? known.sent_messages : known.received_messages);
  return 0;
}

/// Calls visit(message, world rank of its peer or -1) for the blocking sends and receives that are not counted yet.
template <class Visit>
void each_uncounted(const RankSnapshot& rank, Visit visit) {
  for (const ThreadSnapshot& thread : rank.threads)
    if (thread.current)
      each_message(*thread.current, [&](const Message& m) {
        const CommunicatorSnapshot* const communicator = rank.communicator(m.communicator);
        if (may_block(m.function, false)) visit(m, communicator ? world_rank_of(*communicator, m.peer) : -1);
      });
}

/// Pending requests of `kind` whose peer is this rank of MPI_COMM_WORLD; any_rank: every peer.
template <class Selects>
std::int64_t pending(const RankSnapshot& rank, CallKind kind, std::int32_t peer, Selects selects) {
  std::int64_t count = 0;
  for (const RequestSnapshot& request : rank.requests)
    each_message(request, [&](const Message& m) {
      const CommunicatorSnapshot* const communicator = rank.communicator(m.communicator);
      if (m.kind != kind || m.peer == null_rank || !communicator) return;
      if ((peer == any_rank || world_rank_of(*communicator, m.peer) == peer) && selects(m, *communicator)) ++count;
    });
  return count;
}

}  // namespace

MessageNumbers::MessageNumbers(const Members& job) {
  for (const auto& [number, rank] : job.ranks()) {
    all_counted_ = all_counted_ && rank->other_sends == 0 && rank->threads.size() == 1;
    for (const PeerSnapshot& peer : rank->peers)
      if (peer.communicator == no_index)
        sent_to_[static_cast<std::int32_t>(peer.rank)] += static_cast<std::int64_t>(peer.sent_messages);
      else if (peer.sent_messages > 0)
        all_counted_ = false;
    each_uncounted(*rank, [this](const Message& m, std::int32_t peer) {
      if (m.kind == CallKind::send) ++sent_to_[peer];
    });
  }
}

/// The least number of receives from any source that have taken messages of `peer`.
std::int64_t MessageNumbers::from_any_source(const RankSnapshot& rank, const RankSnapshot& peer) const {
  const std::int32_t source = peer.world_rank;
  const auto from_any = [](const Message& m, const CommunicatorSnapshot&) { return m.peer == any_rank; };
  const auto by_name = [](const Message& m, const CommunicatorSnapshot&) { return m.peer >= 0; };
  const std::int64_t complete =
      static_cast<std::int64_t>(rank.other_receives) - pending(rank, CallKind::receive, any_rank, from_any);
  const auto sent = sent_to_.find(rank.world_rank);
  if (complete <= 0 || !all_counted_ || sent == sent_to_.end()) return 0;
  std::int64_t by_others = sent->second - counted(peer, rank.world_rank, CallKind::send);
  each_uncounted(peer, [&](const Message& m, std::int32_t to) {
    if (m.kind == CallKind::send && to == rank.world_rank) --by_others;
  });
  // Of the messages of the other ranks, those that were received by name.
  std::int64_t received = 0;
  for (const PeerSnapshot& known : rank.peers)
    if (known.communicator != no_index)
      return 0;
    else if (static_cast<std::int32_t>(known.rank) != source)
      received += static_cast<std::int64_t>(known.received_messages);
  received -= pending(rank, CallKind::receive, any_rank, by_name) - pending(rank, CallKind::receive, source, by_name);
  return std::max<std::int64_t>(0, complete - std::max<std::int64_t>(0, by_others - received));
}

bool MessageNumbers::is_surely_unmatched(const RankSnapshot& rank, const NumberedMessage& message,
                                         const RankSnapshot& peer) const {
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  if (!communicator || communicator->uid == 0 || !is_evenly_spaced(*communicator) || rank.threads.size() != 1 ||
      peer.threads.size() != 1)
    return false;
  const CallKind other = message.kind == CallKind::send ? CallKind::receive : CallKind::send;
  // Pending operations of the peer that do not match are for other messages.
  const std::int64_t begun =
      counted(peer, rank.world_rank, other) +
      static_cast<std::int64_t>(other == CallKind::send ? peer.other_sends : peer.other_receives) -
      pending(peer, other, rank.world_rank, [&](const Message& m, const CommunicatorSnapshot& its) {
        const bool tags = other == CallKind::receive ? tags_match(message.tag, m.tag) : tags_match(m.tag, message.tag);
        return !tags || its.uid != communicator->uid;
      });
  std::int64_t number = message.number;
  if (number == 0) number = counted(rank, peer.world_rank, message.kind) + 1;
  if (message.kind == CallKind::receive) number += from_any_source(rank, peer);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) - static_cast<std::uint32_t>(begun)) > 0;
}

}  // namespace bestride::inline telemetry
