// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/request_text.hpp"

#include <algorithm>

#include "cli/job/call_site.hpp"
#include "cli/job/rank_line.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline cli {
namespace {

using telemetry::CallKind;
using telemetry::Members;

constexpr std::size_t most_requests = 4;

CallKind kind_of_request(const RequestSnapshot& request) {
  return telemetry::kind_of(request.function, request.ordinal != 0);
}

/// The last call like the one that has begun the request; null if the record does not hold it any more.
const CallSnapshot* beginning(const RankSnapshot& rank, const RequestSnapshot& request) {
  const CallSnapshot* last = nullptr;
  for (const ThreadSnapshot& thread : rank.threads)
    for (const CallSnapshot& call : thread.finished)
      if (call.function == request.function && call.communicator == request.communicator && call.peer == request.peer &&
          call.tag == request.tag && call.ordinal == request.ordinal && call.bytes == request.bytes)
        last = &call;
  return last;
}

/// The bytes of a message for this receive that is longer than it; 0 if none is known. `to`: the rank that receives.
std::uint64_t longer_message(const RankSnapshot& sender, const CommunicatorSnapshot& of_receive, std::int32_t to,
                             const RequestSnapshot& receive, const Members& members) {
  for (const ThreadSnapshot& thread : sender.threads)
    for (const CallSnapshot& call : thread.finished) {
      const CommunicatorSnapshot* const communicator = sender.communicator(call.communicator);
      const CallKind kind = telemetry::kind_of(call.function, call.ordinal != 0);
      if (communicator && communicator->uid == of_receive.uid && call.ordinal == 0 && call.bytes > receive.bytes &&
          (kind == CallKind::send || kind == CallKind::exchange) && (receive.tag < 0 || call.tag == receive.tag) &&
          members.world_rank(*communicator, call.peer) == to)
        return call.bytes;
    }
  return 0;
}

}  // namespace

std::vector<std::string> open_requests(const telemetry::Finding& finding, const JobView& view) {
  std::vector<std::string> lines;
  const Members members(view.job.ranks);
  CallSites sites;
  for (const auto& [number, rank] : members.ranks()) {
    if (!rank->alive) continue;
    for (const RequestSnapshot& request : rank->requests) {
      const CommunicatorSnapshot* const communicator = rank->communicator(request.communicator);
      const CallKind kind = kind_of_request(request);
      if (request.waiter == 0 || !communicator || (kind != CallKind::send && kind != CallKind::receive)) continue;
      const std::int32_t peer = members.world_rank(*communicator, request.peer);
      if (peer < 0 || !std::binary_search(finding.culprits.begin(), finding.culprits.end(), peer)) continue;
      if (lines.size() == most_requests) return lines;
      const CallSnapshot* const call = beginning(*rank, request);
      const std::string place = call ? sites.text(*rank, call->site) : "";
      lines.push_back("rank " + std::to_string(number) + " waits for a request: " + function_name(request.function) +
                      (kind == CallKind::send ? " to rank " : " from rank ") + std::to_string(peer) +
                      (request.tag >= 0 ? ", tag " + std::to_string(request.tag) : "") + ", " +
                      bytes_text(request.bytes) + (place.empty() ? "" : ", posted at " + place));
    }
  }
  return lines;
}

std::vector<std::string> requests_of_failed_call(const RankSnapshot& rank, const JobView& view) {
  const bool completes = std::any_of(rank.threads.begin(), rank.threads.end(), [](const ThreadSnapshot& thread) {
    if (!thread.current) return false;
    const CallKind kind = telemetry::kind_of(thread.current->function, false);
    return kind == CallKind::wait_all || kind == CallKind::wait_any;
  });
  std::vector<std::string> lines;
  if (!completes) return lines;
  const Members members(view.job.ranks);
  CallSites sites;
  for (const RequestSnapshot& request : rank.requests) {
    const CallSnapshot* const call = beginning(rank, request);
    const CommunicatorSnapshot* const communicator = rank.communicator(request.communicator);
    if (!call || !communicator) continue;
    const std::string place = sites.text(rank, call->site);
    lines.push_back("a request of this call: " + call_text(rank, *call, sites) +
                    (place.empty() ? "" : "  at " + place));
    const std::int32_t peer = members.world_rank(*communicator, request.peer);
    if (kind_of_request(request) != CallKind::receive || peer < 0) continue;
    if (const RankSnapshot* const sender = members.find(peer))
      if (const std::uint64_t bytes = longer_message(*sender, *communicator, rank.world_rank, request, members))
        lines.back() += "; rank " + std::to_string(peer) + " has sent " + bytes_text(bytes) + ", which is longer";
  }
  // What is too long for its receive explains the error.
  std::stable_partition(lines.begin(), lines.end(),
                        [](const std::string& line) { return line.ends_with("which is longer"); });
  if (lines.size() > most_requests) lines.resize(most_requests);
  return lines;
}

}  // namespace bestride::inline cli
