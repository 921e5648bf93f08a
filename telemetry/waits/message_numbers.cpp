// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/message_numbers.hpp"

#include <algorithm>

#include "telemetry/waits/messages.hpp"

namespace bestride::inline telemetry {
namespace {

/// Calls of a sender searched for messages with an unwanted tag; calls that a receiver must remember for that.
constexpr std::size_t sends_looked_at = 16, least_remembered = 256;

std::int32_t world_peer(const RankSnapshot& rank, const Message& message) {
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  return communicator ? world_rank_of(*communicator, message.peer) : -1;
}

/// All calls of the rank, or so many, are in the snapshot.
bool remembers(const RankSnapshot& rank, std::size_t calls) {
  return std::all_of(rank.threads.begin(), rank.threads.end(), [calls](const ThreadSnapshot& thread) {
    return thread.finished.size() >= calls || thread.finished.size() + (thread.current ? 1 : 0) >= thread.calls;
  });
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

bool is_idle_slot(const RankSnapshot& rank, const ThreadSnapshot& thread) {
  return thread.tid == 0 || thread.calls == 0 || thread.state == 'Z' || (rank.visible && thread.state == '?');
}

bool has_one_thread(const RankSnapshot& rank) {
  return 1 >= std::count_if(rank.threads.begin(), rank.threads.end(),
                            [&](const ThreadSnapshot& thread) { return !is_idle_slot(rank, thread); });
}

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

MessageNumbers::Index& MessageNumbers::index_of(const RankSnapshot& rank) {
  std::optional<Index>& known = indices_[static_cast<std::size_t>(&rank - job_.job().data())];
  if (known) return *known;
  Index& index = known.emplace();
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

const std::vector<MessageNumbers::Posted>& MessageNumbers::posted_by(const RankSnapshot& rank) {
  std::optional<std::vector<Posted>>& posted = index_of(rank).posted;
  if (posted) return *posted;
  posted.emplace().reserve(rank.requests.size());
  const auto add = [&](const Message& m) {
    const CommunicatorSnapshot* const communicator = rank.communicator(m.communicator);
    if (m.kind == CallKind::receive && communicator)
      posted->push_back(
          {m.peer == any_rank ? any_rank : world_rank_of(*communicator, m.peer), communicator->uid, m.tag});
  };
  for (const ThreadSnapshot& thread : rank.threads)
    for (const CallSnapshot& call : thread.finished) each_message(call, add);
  each_posted_message(rank, add);
  std::sort(posted->begin(), posted->end(), [](const Posted& a, const Posted& b) { return a.peer < b.peer; });
  return *posted;
}

MessageNumbers::Wanted MessageNumbers::sends_wanted(const RankSnapshot& sender, const RankSnapshot& receiver,
                                                    std::size_t calls) {
  const auto is_wanted = [&](std::int32_t peer, std::uint64_t uid, std::int32_t tag) {
    const std::vector<Posted>& posted = posted_by(receiver);
    const auto [first, last] = std::equal_range(posted.begin(), posted.end(), Posted{peer, 0, 0},
                                                [](const Posted& a, const Posted& b) { return a.peer < b.peer; });
    return std::any_of(first, last, [&](const Posted& p) { return p.uid == uid && tags_match(tag, p.tag); });
  };
  Wanted result;
  for (const ThreadSnapshot& thread : sender.threads) {
    const std::size_t known = thread.finished.size();
    for (std::size_t i = known - std::min(known, calls); i < known; ++i)
      each_message(thread.finished[i], [&](const Message& m) {
        if (m.kind != CallKind::send || world_peer(sender, m) != receiver.world_rank) return;
        const std::uint64_t uid = sender.communicator(m.communicator)->uid;
        const bool by_name = is_wanted(sender.world_rank, uid, m.tag), from_any = is_wanted(any_rank, uid, m.tag);
        ++(by_name && from_any ? result.either
           : by_name           ? result.by_name
           : from_any          ? result.from_any
                               : result.unwanted);
      });
  }
  return result;
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

std::optional<std::int32_t> MessageNumbers::ahead(const RankSnapshot& rank, const NumberedMessage& message,
                                                  const RankSnapshot& peer) {
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  if (!communicator || communicator->uid == 0 || !is_evenly_spaced(*communicator) || !has_one_thread(rank) ||
      !has_one_thread(peer))
    return std::nullopt;
  const bool sends = message.kind == CallKind::send;
  std::int64_t number = message.number;
  if (number == 0) {
    const Counts counts = index_of(rank).with(peer.world_rank);
    number = 1 + (sends ? counts.sent : counts.received);
  }
  if (!sends) number += from_any_source(rank, peer);
  const Index& theirs = index_of(peer);
  const Counts counts = theirs.with(rank.world_rank);
  std::int64_t begun = sends ? counts.received : counts.sent + static_cast<std::int64_t>(peer.other_sends);
  if (sends && peer.other_receives > 0) {
    // The tags tell which receives from any source took this rank's messages, if all calls are remembered.
    Wanted wanted;
    constexpr std::size_t all = ~std::size_t{0};
    if (remembers(rank, all) && remembers(peer, all)) wanted = sends_wanted(rank, peer, all);
    const bool known = wanted.either == 0 && wanted.from_any + wanted.by_name > 0;
    begun += known ? wanted.from_any : static_cast<std::int64_t>(peer.other_receives);
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) - static_cast<std::uint32_t>(begun));
}

bool MessageNumbers::is_later_than_calls(const RankSnapshot& rank, const NumberedMessage& message,
                                         const RankSnapshot& peer, std::int64_t operations) {
  const std::int64_t ahead = this->ahead(rank, message, peer).value_or(0);
  if (ahead <= operations) return false;
  // Earlier messages that are still pending may have taken none, as for their tag.
  std::int64_t pending = 0;
  for (const Request& request : index_of(rank).pending_with(peer.world_rank))
    pending += kind_of(request.second->function, false) == message.kind &&
               (message.number == 0 || request.second->number < message.number);
  return ahead - pending > operations;
}

bool MessageNumbers::is_surely_unmatched(const RankSnapshot& rank, const NumberedMessage& message,
                                         const RankSnapshot& peer) {
  const std::optional<std::int32_t> ahead = this->ahead(rank, message, peer);
  if (!ahead) return false;
  const bool sends = message.kind == CallKind::send;
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  // Operations of the peer for other messages: pending ones that do not match; sends with an unrequested tag.
  std::int64_t others = 0;
  for (const Request& request : index_of(peer).pending_with(rank.world_rank))
    each_message(*request.second, [&](const Message& m) {
      if (m.kind == message.kind) return;
      const CommunicatorSnapshot* const its = peer.communicator(m.communicator);
      const bool tags = sends ? tags_match(message.tag, m.tag) : tags_match(m.tag, message.tag);
      others += !tags || !its || its->uid != communicator->uid;
    });
  if (*ahead + others > 0) return true;
  return !sends && *ahead > -static_cast<std::int32_t>(sends_looked_at) && remembers(rank, least_remembered) &&
         *ahead + sends_wanted(peer, rank, sends_looked_at).unwanted > 0;
}

}  // namespace bestride::inline telemetry
