// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/summary.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

using Ranks = std::vector<std::int32_t>;

constexpr std::size_t calls_in_summary = 3;

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// The innermost frame of a rank's main thread with a known line; null if there is none.
const NamedFrame* innermost(const std::vector<StackNode>& nodes, std::int32_t rank) {
  for (const StackNode& node : nodes) {
    if (!node.thread.empty() || !std::binary_search(node.ranks.begin(), node.ranks.end(), rank)) continue;
    if (node.kind == StackNode::Kind::itself) return node.place.line > 0 ? &node.place : nullptr;
    if (const NamedFrame* const inner = innermost(node.children, rank)) return inner;
    const auto named =
        std::find_if(node.frames.rbegin(), node.frames.rend(), [](const NamedFrame& f) { return f.line > 0; });
    return named != node.frames.rend() ? &*named : nullptr;
  }
  return nullptr;
}

/// "MPI_Recv at exchange (halo.c:12)", in which it is; "" outside MPI.
std::string call_at(const RankSnapshot& rank, CallSites& sites, const JobStacks* stacks) {
  const ThreadSnapshot* const thread = leading_thread(rank);
  if (!thread || !thread->current) return "";
  // The stack also shows the line of an interpreted program.
  const NamedFrame* const frame = stacks ? innermost(stacks->tree, rank.world_rank) : nullptr;
  const std::string place = frame ? frame_text(*frame) : sites.text(rank, thread->current->site);
  return function_name(thread->current->function) + (place.empty() ? "" : " at " + place);
}

/// Ranks by the call in which they are, without those outside MPI; the largest group first.
std::vector<std::pair<std::string, Ranks>> by_call(const Ranks& ranks, const JobView& view, CallSites& sites,
                                                   const JobStacks* stacks) {
  std::map<std::string, Ranks> groups;
  for (const std::int32_t number : ranks)
    if (const RankSnapshot* const rank = find_rank(view, number))
      if (const std::string call = call_at(*rank, sites, stacks); !call.empty()) groups[call].push_back(number);
  std::vector<std::pair<std::string, Ranks>> result(groups.begin(), groups.end());
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return result;
}

std::string share_text(std::size_t count, const JobView& view) {
  std::int32_t size = 0;
  for (const RankSnapshot& rank : view.job.ranks) size = std::max(size, rank.world_size);
  return std::to_string(count) + " of " + std::to_string(size) + " ranks";
}

/// "7 of 8 ranks wait in MPI_Allreduce at solve (solver.f90:88)."
std::string waiting_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  const auto groups = by_call(finding.held_up, view, sites, stacks);
  if (groups.empty()) return "";
  const auto& [call, ranks] = groups.front();
  const bool over = finding.fault == Fault::crash, one = ranks.size() == 1;
  return (one ? capital(ranks_text(ranks)) : share_text(ranks.size(), view)) +
         (over  ? one ? " was in " : " were in "
          : one ? " waits in "
                : " wait in ") +
         call + ".";
}

/// "Rank 5 is in assemble (mesh.c:212): look there."
std::string culprit_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  if (finding.culprits.empty()) return "";
  const std::int32_t first = finding.culprits.front();
  const std::string who = capital("rank " + std::to_string(first));
  if (const NamedFrame* const frame = stacks ? innermost(stacks->tree, first) : nullptr)
    return who + " is in " + frame_text(*frame) + ": look there.";
  const RankSnapshot* const rank = find_rank(view, first);
  const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
  if (!thread || thread->current || thread->finished.empty()) return "";
  const CallSnapshot& last = thread->finished.back();
  const std::string place = sites.text(*rank, last.site);
  if (place.empty()) return "";
  return who + " has come past " + function_name(last.function) + " at " + place + ": look behind it.";
}

}  // namespace

std::string summary(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) text += (text.empty() ? "" : " ") + sentence;
  };
  switch (finding.fault) {
    case Fault::crash: add(waiting_text(finding, view, sites, stacks)); break;
    case Fault::stopped:
    case Fault::computation_hang:
    case Fault::starvation:
      add(waiting_text(finding, view, sites, stacks));
      add(culprit_text(finding, view, sites, stacks));
      break;
    case Fault::mismatch:
    case Fault::unmatched_message:
    case Fault::deadlock:
    case Fault::communication_hang: {
      Ranks concerned = finding.held_up;
      concerned.insert(concerned.end(), finding.culprits.begin(), finding.culprits.end());
      std::sort(concerned.begin(), concerned.end());
      concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
      const auto groups = by_call(concerned, view, sites, stacks);
      for (std::size_t i = 0; i < groups.size() && i < calls_in_summary; ++i)
        add(capital(ranks_text(groups[i].second)) + (groups[i].second.size() == 1 ? " waits in " : " wait in ") +
            groups[i].first + ".");
      break;
    }
    case Fault::slow:
    case Fault::slow_communication:
    case Fault::unreachable: break;
  }
  return text;
}

std::vector<NextStep> next_steps(const Finding& finding, const JobView& view) {
  const RankSnapshot* const rank = finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
  const std::string pid = rank ? std::to_string(rank->pid) : "PID";
  const std::string host = rank ? rank->host : "HOST";
  switch (finding.fault) {
    case Fault::crash:
      switch (finding.cause) {
        case Cause::exception:
          return {{"the other ranks end, too, when one has an exception", "mpiexec ... python -m mpi4py SCRIPT",
                   "the job ends with the traceback", "mend the exception that the verdict names"}};
        case Cause::mpi_error:
        case Cause::aborted:
          return {{"the rank's own output says why", "bestride run --watch mpiexec ... 2> output", "no message",
                   "mend what the message names"}};
        default: break;
      }
      if (rank && rank->end && rank->end->kind == EndKind::signal)
        return {{"the variables at the place of the crash", "ulimit -c unlimited; mpiexec ...; gdb PROGRAM CORE",
                 "all are valid", "mend what makes them invalid"},
                {"no access outside of its memory before", "mpiexec ... valgrind --error-exitcode=1 PROGRAM",
                 "no error", "mend the first error"}};
      return {{"the kernel has not ended it for its memory", "dmesg | grep -i 'out of memory'",
               "no line with process " + pid, "use fewer ranks on " + host + ", or a higher memory limit"}};
    case Fault::stopped:
      return {{"nobody holds it on purpose", "kill -CONT " + pid, "the job goes on", "end the debugger that holds it"}};
    case Fault::computation_hang:
      return {{"it is where it was", "bestride where --stacks", "other frames than in this verdict",
               "look at this place of the program"}};
    case Fault::mismatch:
    case Fault::unmatched_message:
    case Fault::deadlock:
      return {{"all members come to the same calls", "bestride where --calls 8", "the same functions in the same order",
               "compare the conditions around the first call that differs"}};
    case Fault::communication_hang:
      return {{"the calls have not changed", "bestride where --calls 8", "other calls than in this verdict",
               "look at the MPI library and at the network"},
              {"the network has no errors", "ip -s link", "no errors and no drops", "repair the interface"}};
    case Fault::starvation:
      return {{"the rank comes to the messages that wait", "bestride where --calls 8",
               "a receive of the rank that waits", "look at how it chooses what it receives next"}};
    case Fault::slow:
      return {{"nobody else uses its core", "top -H -b -n 1", "no other thread near 100 %", "end or move that thread"}};
    case Fault::slow_communication:
      return {{"the interface has no errors", "ip -s link", "no errors and no drops", "repair the link"}};
    case Fault::unreachable: return {{"the host answers", "ping -c 3 " + host, "3 answers", "look at the host"}};
  }
  return {};
}

}  // namespace bestride::inline cli
