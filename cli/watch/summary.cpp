// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/summary.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/watch/deadlock_text.hpp"
#include "cli/watch/finding_facts.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

using Ranks = std::vector<std::int32_t>;

constexpr std::size_t calls_in_summary = 3;

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// Where its main thread is, in the program; null if it is not known.
const NamedFrame* place_in_program(const JobStacks* stacks, std::int32_t rank) {
  const auto known = stacks ? stacks->places.find(rank) : std::map<std::int32_t, NamedFrame>::const_iterator{};
  return stacks && known != stacks->places.end() ? &known->second : nullptr;
}

/// "in assemble (mesh.c:212)"; without lines the innermost function of the program itself; else the call after which it
/// is, "after MPI_Bcast at setup (main.c:8)"; "" if none is known.
std::string place_text(const RankSnapshot& rank, CallSites& sites, const JobStacks* stacks) {
  if (const NamedFrame* const frame = place_in_program(stacks, number_of(rank))) return "in " + frame_text(*frame);
  const ThreadSnapshot* const thread = leading_thread(rank);
  if (!thread || thread->current || thread->finished.empty()) return "";
  const CallSnapshot& last = thread->finished.back();
  const std::string place = sites.text(rank, last.site);
  return place.empty() ? "" : "after " + function_name(last.function) + " at " + place;
}

/// "MPI_Recv at exchange (halo.c:12)", in which it is, or which it repeats without success; "" outside MPI. `on`: with
/// the communicator of a collective call.
std::string call_at(const RankSnapshot& rank, CallSites& sites, const JobStacks* stacks, bool on) {
  const ThreadSnapshot* const thread = leading_thread(rank);
  if (!thread || !(thread->current || thread->polling)) return "";
  // The stack also shows the line of an interpreted program.
  const NamedFrame* const frame = thread->tid == rank.pid ? place_in_program(stacks, number_of(rank)) : nullptr;
  const std::string place = frame && frame->line > 0 ? frame_text(*frame)
                            : thread->current        ? sites.text(rank, thread->current->site)
                                                     : "";
  const std::string communicator = on && thread->current && thread->current->ordinal != 0
                                       ? communicator_text(rank, thread->current->communicator, sites)
                                       : "";
  return function_name(thread->current ? thread->current->function : thread->poll_function) +
         (communicator.empty() ? "" : " on " + communicator) + (place.empty() ? "" : " at " + place);
}

/// Ranks by the call in which they are, without those outside MPI; the largest group first.
std::vector<std::pair<std::string, Ranks>> by_call(const Ranks& ranks, const JobView& view, CallSites& sites,
                                                   const JobStacks* stacks, bool on = false) {
  std::map<std::string, Ranks> groups;
  for (const std::int32_t number : ranks)
    if (const RankSnapshot* const rank = find_rank(view, number))
      if (const std::string call = call_at(*rank, sites, stacks, on); !call.empty()) groups[call].push_back(number);
  std::vector<std::pair<std::string, Ranks>> result(groups.begin(), groups.end());
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return result;
}

std::string share_text(std::size_t count, const JobView& view) {
  std::int32_t size = 0;
  for (const RankSnapshot& rank : view.job.ranks) size = std::max({size, rank.world_size, rank.launch_size});
  return std::to_string(count) + " of " + std::to_string(size) + " ranks";
}

/// "No rank makes progress: all 4 ranks are in read_input (io.c:12), waiting in read of /tmp/input (FIFO). That is
/// where to look."
std::string whole_job_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  // Ranks that do the same with different files share an entry, which names the first file.
  std::map<std::string, Ranks> groups;
  std::map<std::string, std::set<std::string>> targets;
  for (const std::int32_t number : finding.culprits) {
    const RankSnapshot* const rank = find_rank(view, number);
    if (!rank) continue;
    const ThreadSnapshot* const thread = leading_thread(*rank);
    const std::string place = place_text(*rank, sites, stacks);
    std::string text = place;
    // A thread that polls uses the CPU; its system call is not what it waits for.
    const std::string call = finding.cause != Cause::polling ? rank->wait.call
                             : thread                        ? "polling with " + function_name(thread->poll_function)
                                                             : "";
    if (call == "sleep")
      text += ", asleep";
    else if (call.starts_with("wait "))
      text += ", waiting " + call.substr(5);
    else if (!call.empty())
      text += (finding.cause == Cause::polling ? ", " : ", waiting in ") + call;
    const std::string same = text.substr(0, text.find(" /", place.size()));
    groups[same].push_back(number);
    targets[same].insert(text);
  }
  std::vector<std::pair<std::string, Ranks>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < calls_in_summary; ++i) {
    const auto& [same, ranks] = sorted[i];
    const std::string what = *targets[same].begin() + (targets[same].size() > 1 ? " and others" : "");
    if (what.empty()) continue;
    const bool all = ranks.size() == finding.culprits.size(), one = ranks.size() == 1;
    text += (text.empty() ? "" : "; ") +
            (all && !one ? "all " + std::to_string(ranks.size()) + " ranks" : ranks_text(ranks)) +
            (one ? " is " : " are ") + (what.starts_with(", ") ? what.substr(2) : what);
  }
  return text.empty() ? "" : "No rank makes progress: " + text + ". That is where to look.";
}

const char* in_text(bool now, const Ranks& ranks) {
  const bool one = ranks.size() == 1;
  if (!now) return one ? " was in " : " were in ";
  return one ? " waits in " : " wait in ";
}

/// "7 of 8 ranks wait in MPI_Allreduce at solve (solver.f90:88)."
std::string waiting_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  const auto groups = by_call(finding.held_up, view, sites, stacks);
  if (groups.empty()) return "";
  const auto& [call, ranks] = groups.front();
  return (ranks.size() == 1 ? capital(ranks_text(ranks)) : share_text(ranks.size(), view)) +
         in_text(finding.fault != Fault::crash, ranks) + call + ".";
}

/// "Rank 2 was in MPI_Send at main (halo.c:12).", "Rank 2 had returned from MPI_Bcast at main (setup.c:8)."
std::string last_call_text(const Finding& finding, const JobView& view, CallSites& sites) {
  const RankSnapshot* const rank = finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits.front());
  const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
  if (!thread || (!thread->current && thread->finished.empty())) return "";
  const CallSnapshot& call = thread->current ? *thread->current : thread->finished.back();
  const std::string place = sites.text(*rank, call.site);
  return "Rank " + std::to_string(number_of(*rank)) + (thread->current ? " was in " : " had returned from ") +
         function_name(call.function) + (place.empty() ? "" : " at " + place) + ".";
}

/// "Rank 0 called MPI_Win_start at main (solver.c:7); rank 1 called MPI_Win_post at main (solver.c:5).": the calls of
/// an epoch whose groups differ.
std::string epoch_calls_text(const telemetry::EpochMismatch& epoch, const JobView& view, CallSites& sites) {
  const std::string missing = epoch.missing;
  const auto call_text = [&](std::int32_t number, const std::string& function) -> std::string {
    const RankSnapshot* const rank = find_rank(view, number);
    const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
    const CallSnapshot* made = nullptr;
    if (thread) {
      for (const CallSnapshot& call : thread->finished)
        if (function_name(call.function) == function) made = &call;
      if (thread->current && function_name(thread->current->function) == function) made = &*thread->current;
    }
    const std::string place = made ? sites.text(*rank, made->site) : "";
    return made ? ranks_text({number}) + " called " + function + (place.empty() ? "" : " at " + place) : "";
  };
  const std::string begun = call_text(epoch.waiter, missing == "MPI_Win_post" ? "MPI_Win_start" : "MPI_Win_post");
  const std::string other = call_text(epoch.other, missing);
  const std::string both = begun + (begun.empty() || other.empty() ? "" : "; ") + other;
  return both.empty() ? "" : capital(both) + ".";
}

/// "Rank 5 is in assemble (mesh.c:212): look there.", "Ranks 5,6 are in assemble (mesh.c:212); rank 7 is in load
/// (io.c:9): look there."
std::string culprit_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  std::vector<std::pair<std::string, Ranks>> groups;  // by the first rank
  for (const std::int32_t number : finding.culprits) {
    const RankSnapshot* const rank = find_rank(view, number);
    const std::string place = rank ? place_text(*rank, sites, stacks) : "";
    if (place.empty()) continue;
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == place; });
    (known != groups.end() ? *known : groups.emplace_back(place, Ranks{})).second.push_back(number);
  }
  std::string text;
  for (std::size_t i = 0; i < groups.size() && i < calls_in_summary; ++i)
    text += (i ? "; " : "") + ranks_text(groups[i].second) + (groups[i].second.size() == 1 ? " is " : " are ") +
            groups[i].first;
  return text.empty() ? "" : capital(text) + ": look there.";
}

/// "3 of 4 ranks wait in MPI_Init at main (solver.c:7). Rank 2 is in load (io.c:9): look there."
std::string starting_text(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  const std::string culprits = culprit_text(finding, view, sites, stacks);
  for (const RankSnapshot& rank : view.job.ranks)
    if (const std::string call = call_at(rank, sites, nullptr, false); !call.empty())
      return std::to_string(finding.held_up.size()) + " of " + std::to_string(rank.launch_size) + " ranks" +
             in_text(true, finding.held_up) + call + "." + (culprits.empty() ? "" : " " + culprits);
  return "";
}

}  // namespace

std::string summary(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks) {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) text += (text.empty() ? "" : " ") + sentence;
  };
  switch (finding.fault) {
    case Fault::crash:
      if (finding.without_process) return starting_text(finding, view, sites, stacks);
      add(waiting_text(finding, view, sites, stacks));
      if (!stacks && finding.cause != Cause::exception) add(last_call_text(finding, view, sites));
      break;
    case Fault::stopped:
    case Fault::computation_hang:
    case Fault::starvation:
      if (finding.cause == Cause::starting) return starting_text(finding, view, sites, stacks);
      if (finding.whole_job) return whole_job_text(finding, view, sites, stacks);
      add(waiting_text(finding, view, sites, stacks));
      add(culprit_text(finding, view, sites, stacks));
      break;
    case Fault::mismatch:
    case Fault::unmatched_message:
    case Fault::deadlock:
    case Fault::communication_hang: {
      if (finding.epoch && finding.epoch->group) add(epoch_calls_text(*finding.epoch, view, sites));
      Ranks concerned = finding.held_up;
      concerned.insert(concerned.end(), finding.culprits.begin(), finding.culprits.end());
      if (finding.mismatch)
        for (const CollectiveMismatch::Variant& variant : finding.mismatch->variants)
          concerned.insert(concerned.end(), variant.ranks.begin(), variant.ranks.end());
      std::sort(concerned.begin(), concerned.end());
      concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
      const auto groups = by_call(concerned, view, sites, stacks, true);
      for (std::size_t i = 0; i < groups.size() && i < calls_in_summary; ++i)
        add(capital(ranks_text(groups[i].second)) +
            in_text(find_rank(view, groups[i].second[0])->alive, groups[i].second) + groups[i].first + ".");
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
                   "the job ends with the traceback", "fix the exception that the verdict names"}};
        case Cause::mpi_error:
        case Cause::aborted:
          return {{"the rank's own output says why", "bestride run --watch mpiexec ... 2> output", "no message",
                   "fix what the message names"}};
        default: break;
      }
      if (rank && rank->end && rank->end->kind == EndKind::signal)
        return {{"the variables at the place of the crash", "ulimit -c unlimited; mpiexec ...; gdb PROGRAM CORE",
                 "all are valid", "fix what makes them invalid"},
                {"no access outside of its memory before", "mpiexec ... valgrind --error-exitcode=1 PROGRAM",
                 "no error", "fix the first error"}};
      if (const int status = wait_status(finding, view); status >= 0 && WIFEXITED(status))
        return {{"the rank's own output says why it ended", "bestride run --watch mpiexec ... 2> output", "no message",
                 "fix what the message names"}};
      return {{"the kernel has not ended it for its memory", "dmesg | grep -i 'out of memory'",
               "no line with process " + pid, "use fewer ranks on " + host + ", or a higher memory limit"}};
    case Fault::stopped:
      return {{"nobody holds it on purpose", "kill -CONT " + pid, "the job goes on", "end the debugger that holds it"}};
    case Fault::computation_hang:
      if (finding.cause == Cause::polling)
        return {{"a message is under way", "bestride where --calls 8", "a send that a polling call could find",
                 "look at who should send, and with which tag and communicator"}};
      return {{finding.culprits.size() == 1 ? "it has moved on" : "they have moved on", "bestride where --stacks",
               "other frames than in this verdict", "look at this place of the program"}};
    case Fault::unmatched_message:
      return {{"destination, tag and communicator of the send and of the receive agree", "bestride where --calls 8",
               "the same on both ranks", "fix the one that differs"}};
    case Fault::mismatch:
      if (finding.mismatch && !finding.mismatch->pairs.empty())
        return {{"both ranks pass the same amount for each other", "bestride where --calls 8", "equal counts and types",
                 "fix the counts that differ"}};
      if (finding.epoch)
        return {{"the groups of MPI_Win_post and MPI_Win_start fit each other", "bestride where --calls 8",
                 "the same calls on both ranks", "compare how the ranks make these groups"}};
      return {{"all members reach the same calls", "bestride where --calls 8", "the same functions in the same order",
               "compare the conditions around the first call that differs"}};
    case Fault::deadlock: return deadlock_steps(finding, view);
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
