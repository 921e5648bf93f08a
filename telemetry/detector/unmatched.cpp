// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/unmatched.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "telemetry/waits/messages.hpp"

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

bool is_probe(std::uint16_t function) {
  const std::string& name = function_name(function);
  return name.find("probe") != std::string::npos || name.find("Probe") != std::string::npos;
}

struct Receives {
  std::vector<Envelope> posted;   ///< finished, present and requests
  std::vector<Envelope> awaited;  ///< those in which a thread is, or for which one waits
};

Receives receives_of(const RankSnapshot& rank) {
  Receives result;
  const auto add_to = [&rank](std::vector<Envelope>& list) {
    return [&rank, &list](const Message& message) {
      if (message.kind == CallKind::receive)
        list.push_back({uid_of(rank, message.communicator), message.peer, message.tag});
    };
  };
  for (const ThreadSnapshot& thread : rank.threads) {
    for (const CallSnapshot& call : thread.finished) each_message(call, add_to(result.posted));
    if (thread.current) each_message(*thread.current, add_to(result.awaited));
  }
  each_posted_message(rank, add_to(result.posted));
  for (const RequestSnapshot& request : rank.requests)
    if (request.waiter != 0) each_message(request, add_to(result.awaited));
  return result;
}

bool takes(const Envelope& receive, std::uint64_t uid, std::int32_t from, std::int32_t tag) {
  return receive.uid == uid && (receive.peer == from || receive.peer == any_rank) && tags_match(tag, receive.tag);
}

}  // namespace

std::optional<TagMismatch> find_tag_mismatch(const RankSnapshot& sender, const RankSnapshot& receiver) {
  std::optional<Receives> receives;  // found when there is a message to look for
  std::optional<TagMismatch> found;
  const auto look = [&](const Message& sent) {
    const std::uint64_t uid = uid_of(sender, sent.communicator);
    if (sent.kind != CallKind::send || uid == 0 || sent.peer != rank_in(receiver, uid)) return;
    const std::int32_t from = rank_in(sender, uid);
    if (!receives) receives = receives_of(receiver);
    for (const Envelope& posted : receives->posted)
      if (takes(posted, uid, from, sent.tag)) return;
    for (const Envelope& awaited : receives->awaited)
      if (awaited.uid == uid && (awaited.peer == from || awaited.peer == any_rank))
        found = TagMismatch{sender.world_rank, receiver.world_rank, sent.tag, awaited.tag};
  };
  for (const ThreadSnapshot& thread : sender.threads) {
    const std::size_t count = thread.finished.size();
    for (std::size_t i = count - std::min(count, last_calls); i < count; ++i) each_message(thread.finished[i], look);
    if (thread.current) each_message(*thread.current, look);
  }
  return found;
}

bool passes_over_messages(const RankSnapshot& sender, const RankSnapshot& receiver) {
  constexpr std::size_t many = 16;
  std::optional<Envelope> last;
  for (const ThreadSnapshot& thread : sender.threads)
    for (std::size_t i = thread.finished.size() - std::min(thread.finished.size(), last_calls);
         i < thread.finished.size(); ++i)
      each_message(thread.finished[i], [&](const Message& sent) {
        const std::uint64_t uid = uid_of(sender, sent.communicator);
        if (sent.kind == CallKind::send && uid != 0 && sent.peer == rank_in(receiver, uid))
          last = Envelope{uid, rank_in(sender, uid), sent.tag};
      });
  if (!last) return false;
  std::size_t probes = 0;
  for (const ThreadSnapshot& thread : receiver.threads)
    for (const CallSnapshot& call : thread.finished)
      each_message(call, [&](const Message& probe) {
        if (probe.kind == CallKind::receive && probe.peer == any_rank && is_probe(probe.function) &&
            uid_of(receiver, probe.communicator) == last->uid && tags_match(last->tag, probe.tag))
          ++probes;
      });
  return probes >= many;
}

bool has_unreceived_messages(const RankSnapshot& sender, const RankSnapshot& receiver) {
  for (const ThreadSnapshot& thread : receiver.threads)
    for (const CallSnapshot& call : thread.finished)
      if (kind_of(call.function, call.ordinal != 0) == CallKind::receive && call.peer == any_rank &&
          !is_probe(call.function))
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
