// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/unmatched_text.hpp"

#include "cli/job/call_site.hpp"
#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"
#include "telemetry/waits/messages.hpp"

namespace bestride::inline cli {
namespace {

using telemetry::CallKind;
using telemetry::Members;
using telemetry::Message;

std::string rank_text(std::int32_t rank) { return "rank " + std::to_string(rank); }

/// " at halo (halo.c:12)": where a rank has begun its last message of this kind and tag with another one; "" if its
/// record does not say.
std::string place_of(CallKind kind, std::int32_t rank, std::int32_t peer, std::int32_t tag, const JobView& view) {
  const RankSnapshot* const known = find_rank(view, rank);
  if (!known) return "";
  const Members members(view.job.ranks);
  std::uint32_t site = no_index;
  const auto look = [&](const CallSnapshot& call) {
    each_message(call, [&](const Message& message) {
      const CommunicatorSnapshot* const on = known->communicator(message.communicator);
      if (message.kind == kind && message.tag == tag && on && members.world_rank(*on, message.peer) == peer)
        site = call.site;
    });
  };
  for (const ThreadSnapshot& thread : known->threads) {
    for (const CallSnapshot& call : thread.finished) look(call);
    if (thread.current) look(*thread.current);
  }
  CallSites sites;
  const std::string place = sites.text(*known, site);
  return place.empty() ? "" : " at " + place;
}

std::string tags_text(const TagMismatch& tags, const JobView& view) {
  const std::string sent_at = place_of(CallKind::send, tags.from, tags.to, tags.sent, view);
  if (tags.left_out)
    return rank_text(tags.from) + " has left out the message with tag " + std::to_string(tags.wanted) + " for which " +
           rank_text(tags.to) + " waits, and has sent it the next one, with tag " + std::to_string(tags.sent) + sent_at;
  return rank_text(tags.from) + " sent " + rank_text(tags.to) + " a message with tag " + std::to_string(tags.sent) +
         sent_at +
         (tags.other_communicator
              ? tags.by_receiver ? ", but " + rank_text(tags.to) + " waits for it on another communicator" +
                                       place_of(CallKind::receive, tags.to, tags.from, tags.wanted, view)
                                 : ", on another communicator than the one on which it is expected"
              : ", but " + rank_text(tags.to) + " waits for tag " + std::to_string(tags.wanted) +
                    (tags.by_receiver ? place_of(CallKind::receive, tags.to, tags.from, tags.wanted, view) : ""));
}

std::string wrong_peer_text(const WrongPeer& peer, const JobView& view) {
  const std::string tag = std::to_string(peer.tag);
  if (peer.by_receiver)
    return rank_text(peer.to) + " waits for a message from " + rank_text(peer.named) + ", but " + rank_text(peer.from) +
           " has sent it one with tag " + tag;
  return rank_text(peer.from) + " sent " + rank_text(peer.named) + " a message with tag " + tag +
         place_of(CallKind::send, peer.from, peer.named, peer.tag, view) + ", for which " + rank_text(peer.to) +
         " waits";
}

}  // namespace

std::string unmatched_headline(const Finding& finding, const JobView& view, const std::string& who) {
  const bool one = finding.culprits.size() == 1;
  if (finding.wrong_peer) return wrong_peer_text(*finding.wrong_peer, view);
  if (finding.tags) return tags_text(*finding.tags, view);
  if (finding.partitioned)
    return who + (one ? " has" : " have") +
           " started a partitioned send that does not end: some of its partitions are not marked ready (MPI_Pready)";
  if (finding.alone) return who + (one ? " waits" : " wait") + " in a send or receive that no other rank matches";
  return who + (one ? " has" : " have") + " left out a message that another rank waits for";
}

std::string unmatched_advice(const Finding& finding, const JobView& view) {
  if (finding.partitioned)
    return "look whether the rank calls MPI_Pready for each partition, after each start and before it waits";
  if (finding.tags && finding.tags->left_out)
    return "look for a condition under which " + rank_text(finding.tags->from) + " does not send this message";
  for (const std::int32_t waiter : finding.held_up)
    for (const std::int32_t culprit : finding.culprits)
      if (const auto* const why = view.graph.edge(waiter, culprit);
          finding.alone && !finding.wrong_peer && why && why->ordinal != 0)
        return "look whether " + rank_text(culprit) + " leaves out " + function_name(why->function) +
               ", in which others wait for it, or another rank leaves out its message; else compare destination, tag "
               "and communicator of the send and of the receive";
  return "compare destination, tag and communicator of the send and of the receive";
}

}  // namespace bestride::inline cli
