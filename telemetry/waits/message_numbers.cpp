// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/message_numbers.hpp"

#include <algorithm>

#include "telemetry/waits/messages.hpp"

namespace bestride::inline telemetry {
namespace {

std::int32_t world_peer(const RankSnapshot& rank, const Message& message) {
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  return communicator ? world_rank_of(*communicator, message.peer) : -1;
}

/// Calls visit(rank of the receiver in MPI_COMM_WORLD or -1) for the blocking sends, which are not counted yet.
template <class Visit>
void each_blocking_send(const RankSnapshot& rank, Visit visit) {
  for (const ThreadSnapshot& thread : rank.threads)
    if (thread.current && may_block(thread.current->function, false))
      each_message(*thread.current, [&](const Message& m) {
        if (m.kind == CallKind::send) visit(world_peer(rank, m));
      });
}

}  // namespace

MessageNumbers::Counts MessageNumbers::Index::with(std::int32_t peer) const noexcept {
  const auto at = std::lower_bound(counts.begin(), counts.end(), peer,
                                   [](const Counts& known, std::int32_t number) { return known.peer < number; });
  return at != counts.end() && at->peer == peer ? *at : Counts{};
}

std::span<const MessageNumbers::Request> MessageNumbers::Index::pending_with(std::int32_t peer) const noexcept {
  const auto [first, last] = std::equal_range(pending.begin(), pending.end(), Request{peer, nullptr},
                                              [](const Request& a, const Request& b) { return a.first < b.first; });
  return {first, last};
}

const MessageNumbers::Index& MessageNumbers::index_of(const RankSnapshot& rank) {
  const auto [at, is_new] = indices_.try_emplace(&rank);
  Index& index = at->second;
  if (!is_new) return index;
  index.counts.reserve(rank.peers.size());
  for (const PeerSnapshot& peer : rank.peers) {
    index.all_named = index.all_named && peer.communicator == no_index;
    if (peer.communicator != no_index) continue;
    index.counts.push_back({static_cast<std::int32_t>(peer.rank), static_cast<std::int64_t>(peer.sent_messages),
                            static_cast<std::int64_t>(peer.received_messages)});
    index.named_receives += index.counts.back().received;
  }
  std::sort(index.counts.begin(), index.counts.end(), [](const Counts& a, const Counts& b) { return a.peer < b.peer; });
  index.pending.reserve(rank.requests.size());
  for (const RequestSnapshot& request : rank.requests)
    each_message(request, [&](const Message& m) {
      if (m.kind == CallKind::receive && m.peer == any_rank) ++index.any_source_pending;
      if (m.kind == CallKind::receive && m.peer >= 0) ++index.named_receives_pending;
      if (const std::int32_t peer = world_peer(rank, m); peer >= 0) index.pending.emplace_back(peer, &request);
    });
  std::sort(index.pending.begin(), index.pending.end());
  return index;
}

const MessageNumbers::SentTo* MessageNumbers::sent_to() {
  if (!sent_to_) {
    sent_to_.emplace();
    for (const auto& [number, rank] : job_.ranks()) {
      all_counted_ = all_counted_ && rank->other_sends == 0 && rank->threads.size() == 1;
      for (const PeerSnapshot& peer : rank->peers)
        if (peer.communicator == no_index)
          (*sent_to_)[static_cast<std::int32_t>(peer.rank)] += static_cast<std::int64_t>(peer.sent_messages);
        else
          all_counted_ = all_counted_ && peer.sent_messages == 0;
      each_blocking_send(*rank, [this](std::int32_t peer) { ++(*sent_to_)[peer]; });
    }
  }
  return all_counted_ ? &*sent_to_ : nullptr;
}

/// The least number of receives from any source that have taken messages of `peer`.
std::int64_t MessageNumbers::from_any_source(const RankSnapshot& rank, const RankSnapshot& peer) {
  if (rank.other_receives == 0) return 0;
  const Index& mine = index_of(rank);
  const std::int64_t complete = static_cast<std::int64_t>(rank.other_receives) - mine.any_source_pending;
  const SentTo* const sent = sent_to();
  if (complete <= 0 || !mine.all_named || !sent) return 0;
  const auto to_me = sent->find(rank.world_rank);
  if (to_me == sent->end()) return 0;
  std::int64_t by_others = to_me->second - index_of(peer).with(rank.world_rank).sent;
  each_blocking_send(peer, [&](std::int32_t to) { by_others -= to == rank.world_rank; });
  // Of the messages of the other ranks, those that were received by name.
  std::int64_t received = mine.named_receives - mine.named_receives_pending - mine.with(peer.world_rank).received;
  for (const Request& request : mine.pending_with(peer.world_rank))
    received += kind_of(request.second->function, false) == CallKind::receive;
  return std::max<std::int64_t>(0, complete - std::max<std::int64_t>(0, by_others - received));
}

bool MessageNumbers::is_surely_unmatched(const RankSnapshot& rank, const NumberedMessage& message,
                                         const RankSnapshot& peer) {
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  if (!communicator || communicator->uid == 0 || !is_evenly_spaced(*communicator) || rank.threads.size() != 1 ||
      peer.threads.size() != 1)
    return false;
  const bool sends = message.kind == CallKind::send;
  std::int64_t number = message.number;
  if (number == 0) {
    const Counts counts = index_of(rank).with(peer.world_rank);
    number = 1 + (sends ? counts.sent : counts.received);
  }
  if (!sends) number += from_any_source(rank, peer);
  const Index& theirs = index_of(peer);
  const Counts counts = theirs.with(rank.world_rank);
  std::int64_t begun = sends ? counts.received + static_cast<std::int64_t>(peer.other_receives)
                             : counts.sent + static_cast<std::int64_t>(peer.other_sends);
  // Its pending operations that do not match are for other messages.
  for (const Request& request : theirs.pending_with(rank.world_rank))
    each_message(*request.second, [&](const Message& m) {
      if (m.kind == message.kind) return;
      const CommunicatorSnapshot* const its = peer.communicator(m.communicator);
      const bool tags = sends ? tags_match(message.tag, m.tag) : tags_match(m.tag, message.tag);
      begun -= !tags || !its || its->uid != communicator->uid;
    });
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) - static_cast<std::uint32_t>(begun)) > 0;
}

}  // namespace bestride::inline telemetry
