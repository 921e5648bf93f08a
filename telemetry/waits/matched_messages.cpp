// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/matched_messages.hpp"

#include <algorithm>
#include <tuple>

namespace bestride::inline telemetry {
namespace {

constexpr std::uint16_t tag_of_any = 0xffff;

/// One end of a message.
struct End {
  std::int32_t from, to;
  const RankSnapshot* rank;
  const MessageSnapshot* message;

  auto key() const noexcept { return std::tie(from, to, message->number); }
};

/// In MPI_COMM_WORLD; -1: not known.
std::int32_t peer_of(const Members& members, const RankSnapshot& rank, const MessageSnapshot& message) {
  const auto peer = static_cast<std::int32_t>(message.peer);
  if (message.communicator == no_index) return peer;
  const CommunicatorSnapshot* const communicator = rank.communicator(message.communicator);
  return communicator ? members.world_rank(*communicator, peer) : -1;
}

bool is_whole(const MessageSnapshot& message) {
  return message.posted <= message.waited && message.waited <= message.completed && message.number != 0;
}

}  // namespace

std::vector<MatchedMessage> matched_messages(const Members& members) {
  std::vector<End> sent, received;
  for (const auto& [number, rank] : members.ranks())
    for (const MessageSnapshot& message : rank->messages) {
      if (!is_whole(message) || (message.received && (rank->other_receives > 0 || rank->peers_dropped > 0))) continue;
      const std::int32_t peer = peer_of(members, *rank, message);
      if (peer < 0 || peer == number) continue;
      if (message.received)
        received.push_back({peer, number, rank, &message});
      else
        sent.push_back({number, peer, rank, &message});
    }
  const auto is_before = [](const End& a, const End& b) { return a.key() < b.key(); };
  std::sort(sent.begin(), sent.end(), is_before);
  std::sort(received.begin(), received.end(), is_before);
  std::vector<MatchedMessage> result;
  for (std::size_t i = 0, k = 0; i < sent.size() && k < received.size();) {
    const End &s = sent[i], &r = received[k];
    if (s.key() < r.key()) {
      ++i;
    } else if (r.key() < s.key()) {
      ++k;
    } else {
      if (s.message->tag == r.message->tag || r.message->tag == tag_of_any)
        result.push_back({s.rank, r.rank, s.message, r.message});
      ++i, ++k;
    }
  }
  return result;
}

}  // namespace bestride::inline telemetry
