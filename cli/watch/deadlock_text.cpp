// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/deadlock_text.hpp"

#include <algorithm>

#include "cli/job/rank_list.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

using telemetry::CallKind;

/// Of the waits of the cycle, those of each kind.
struct Waits {
  std::size_t sends = 0, receives = 0, collectives = 0, starts = 0, exposures = 0, locks = 0, others = 0;
  std::size_t outside = 0;  ///< MPI, for locks
  std::size_t messages() const { return sends + receives; }
  std::size_t epochs() const { return starts + exposures; }
  std::size_t all() const { return messages() + collectives + epochs() + locks + outside + others; }
};

Waits waits_of(const Finding& finding, const JobView& view) {
  Waits result;
  const std::vector<std::int32_t>& cycle = finding.cycle;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const auto* const why = view.graph.edge(cycle[i], cycle[(i + 1) % cycle.size()]);
    if (!why) {
      ++result.others;
      continue;
    }
    if (why->holds_lock) {
      ++result.outside;
      continue;
    }
    const bool collective = why->ordinal != 0;
    switch (telemetry::kind_of(why->function, collective)) {
      case CallKind::lock: ++result.locks; break;
      case CallKind::access: ++result.starts; break;
      case CallKind::exposure: ++result.exposures; break;
      case CallKind::send:
      case CallKind::receive:
      case CallKind::exchange: ++(why->receives ? result.receives : result.sends); break;
      default: ++(collective ? result.collectives : result.others);
    }
  }
  return result;
}

constexpr const char* one_order = "make collective calls on several communicators in one order on all ranks";
constexpr const char* posts_first =
    "call MPI_Win_post before MPI_Win_start, which may wait for it on the other ranks, and MPI_Win_complete before "
    "MPI_Win_wait";

/// "MPI_Win_fence", in which a rank of the cycle waits for a culprit, if not all ranks of the cycle are culprits.
std::string missing_call(const Finding& finding, const JobView& view) {
  const std::vector<std::int32_t>& cycle = finding.cycle;
  const auto blamed = [&](std::int32_t rank) {
    return std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank);
  };
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::int32_t target = cycle[(i + 1) % cycle.size()];
    const auto* const why = view.graph.edge(cycle[i], target);
    if (why && why->ordinal != 0 && !blamed(cycle[i]) && blamed(target)) return function_name(why->function);
  }
  return "";
}

}  // namespace

std::string deadlock_headline(const Finding& finding, const JobView& view) {
  if (waits_of(finding, view).outside > 0)
    return ranks_text(finding.culprits) + (finding.culprits.size() == 1 ? " waits" : " wait") + " in MPI and " +
           (finding.culprits.size() == 1 ? "holds" : "hold") +
           " a lock, for which a rank waits that is needed there: " + cycle_text(finding.cycle);
  if (finding.cycle.size() != 1) return "ranks wait for each other in a cycle: " + cycle_text(finding.cycle);
  const std::string who = "rank " + std::to_string(finding.cycle[0]);
  const Waits waits = waits_of(finding, view);
  const auto* const why = view.graph.edge(finding.cycle[0], finding.cycle[0]);
  if (waits.sends > 0)
    return who + " sends a message to itself by " + function_name(why->function) +
           ", which waits until the message is received";
  if (waits.receives > 0) return who + " waits for a message from itself, which only it could send";
  return who + " waits for itself";
}

std::string lock_evidence(const Finding& finding, const JobView& view) {
  if (finding.fault != Fault::deadlock) return "";
  const Waits waits = waits_of(finding, view);
  if (waits.locks + waits.outside == 0) return "";
  return ranks_text(finding.culprits) + (finding.culprits.size() == 1 ? " holds" : " hold") +
         (waits.outside > 0 ? " a lock, and waits in MPI for ranks that wait for the lock"
                            : " the lock of a window for which others wait");
}

std::string deadlock_advice(const Finding& finding, const JobView& view) {
  const Waits waits = waits_of(finding, view);
  if (waits.outside > 0)
    return "release the lock before a call of MPI that waits for ranks that want it; look for a way past its release";
  if (waits.locks > 0) return "call MPI_Win_unlock before a call that waits for ranks that want the lock";
  if (waits.epochs() == waits.all()) return posts_first;
  if (waits.collectives == waits.all()) {
    const std::string missing = missing_call(finding, view);
    return missing.empty() ? one_order
                           : "look whether " + ranks_text(finding.culprits) +
                                 (finding.culprits.size() == 1 ? " leaves out " : " leave out ") + missing +
                                 ", in which others wait; else " + one_order;
  }
  if (waits.messages() == waits.all() && finding.cycle.size() == 1)
    return waits.sends > 0 ? "post the receive (MPI_Irecv) before this send, or use MPI_Sendrecv"
                           : "send the message (MPI_Isend) before this receive, or name the rank that sends it";
  if (waits.receives == waits.all()) return "let one of the ranks send before it receives, or use MPI_Sendrecv";
  if (waits.messages() == waits.all())
    return "post receives before sends that wait for them (MPI_Irecv), or use MPI_Sendrecv";
  return "bring the calls of these ranks into one order: each waits in a call that another one makes only later";
}

std::vector<NextStep> deadlock_steps(const Finding& finding, const JobView& view) {
  const Waits waits = waits_of(finding, view);
  const std::string command = "bestride where --calls 8", otherwise = deadlock_advice(finding, view);
  if (waits.outside > 0)
    return {{"the rank that holds the lock is where it was", "bestride where --stacks",
             "other frames than in this verdict", otherwise}};
  if (waits.locks > 0)
    return {{"each lock of a window is released before the next wait", command,
             "an MPI_Win_unlock after each MPI_Win_lock", otherwise}};
  if (waits.epochs() == waits.all())
    return {{"each rank posts before it starts or waits", command, "MPI_Win_post before MPI_Win_start", otherwise}};
  if (waits.messages() == waits.all())
    return {{"each message is sent before a rank waits for it, and received before its sender waits for that", command,
             "a send for each receive, in this order", otherwise}};
  return {{"all members reach the same calls", command, "the same functions in the same order",
           "compare the conditions around the first call that differs"}};
}

}  // namespace bestride::inline cli
