// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/finding_text.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/watch/summary.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/collective_call.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_groups = 14, most_stack_lines = 12;

/// "rank 3 (pid 4711 on node1)", "ranks 3,5".
std::string subject(const Finding& finding, const JobView& view) {
  std::string text = ranks_text(finding.culprits);
  if (finding.culprits.size() != 1) return text;
  if (const RankSnapshot* const rank = find_rank(view, finding.culprits[0]))
    text += " (pid " + std::to_string(rank->pid) + " on " + rank->host + ")";
  return text;
}

const char* plural(const Finding& finding, const char* one, const char* many) {
  return finding.culprits.size() == 1 ? one : many;
}

/// What the first culprit has noted of its end in this way; null if it has not.
const EndSnapshot* noted(const Finding& finding, const JobView& view, EndKind kind) {
  const RankSnapshot* const rank =
      finding.fault != Fault::crash || finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
  return rank && rank->end && rank->end->kind == kind ? &*rank->end : nullptr;
}

/// "advect (field.c:12)": the innermost frame of the culprits of which a line is known; "" if they crashed at
/// different places, or if their stacks are not known.
std::string crash_place(const Finding& finding, const JobStacks* stacks) {
  const StackNode* node = stacks && !stacks->tree.empty() ? &stacks->tree.front() : nullptr;
  if (!node || !node->children.empty() || node->ranks != finding.culprits) return "";
  const auto named =
      std::find_if(node->frames.rbegin(), node->frames.rend(), [](const NamedFrame& frame) { return frame.line > 0; });
  const NamedFrame& frame = named != node->frames.rend() ? *named : node->frames.back();
  // All frames are a library's, since outer ones are missing or main has returned.
  if (is_library_thread({frame})) return "";
  return frame_text(frame);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

/// "Message truncated" of the first line, which may be "Message truncated, error stack:".
std::string error_text(const EndSnapshot& end) {
  const std::vector<std::string> lines = lines_of(end.text);
  return lines.empty() ? "" : lines[0].substr(0, lines[0].find(", error stack:"));
}

/// "MPI_Recv" or "an MPI call", in which it is.
std::string call_of(const Finding& finding, const JobView& view) {
  const RankSnapshot* const rank = find_rank(view, finding.culprits[0]);
  const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
  return thread && thread->current ? function_name(thread->current->function) : "an MPI call";
}

/// "signal 11 (Segmentation fault)".
std::string signal_text(int signal) {
  const char* const text = strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (text ? text : "unknown") + ")";
}

std::string end_text(int wait_status) {
  if (wait_status < 0) return "ended";
  if (WIFSIGNALED(wait_status)) {
    return "killed by " + signal_text(WTERMSIG(wait_status)) + (WCOREDUMP(wait_status) ? ", core dumped," : "");
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

const char* verb(Cause cause, bool one) {
  switch (cause) {
    case Cause::computing: return one ? "computes" : "compute";
    case Cause::sleeping: return one ? "sleeps" : "sleep";
    case Cause::blocked: return one ? "is blocked" : "are blocked";
    case Cause::transferring: return one ? "reads or writes" : "read or write";
    case Cause::uninterruptible: return one ? "waits in the kernel" : "wait in the kernel";
    case Cause::starting: return one ? "has not called MPI_Init" : "have not called MPI_Init";
    default: return one ? "is outside MPI" : "are outside MPI";
  }
}

/// "rank 3", "host node1".
std::string end_of(const SlowPath& path, bool other) {
  if (path.between_hosts) return "host " + (other ? path.other_host : path.host);
  return "rank " + std::to_string(other ? path.other_rank : path.rank);
}

/// "messages that host node1 sends take 3.1 times as long as those of the others".
std::string slow_path_text(const SlowPath& path) {
  const std::string node = end_of(path, false), other = end_of(path, true);
  const char* const whose = path.between_hosts ? "the other hosts" : "the other ranks of a host";
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.1f", path.factor);
  const std::string longer = std::string(" take ") + factor + " times as long as ";
  switch (path.kind) {
    case PathKind::link: return "messages from " + node + " to " + other + longer + "between " + whose;
    case PathKind::two_way_link: return "messages between " + node + " and " + other + longer + "between " + whose;
    case PathKind::send: return "messages that " + node + " sends" + longer + "those of " + whose;
    case PathKind::receive: return "messages that " + node + " receives" + longer + "those of " + whose;
    case PathKind::node: return "messages that " + node + " sends or receives" + longer + "those of " + whose;
  }
  return node;
}

void add_slow_path_evidence(const SlowPath& path, std::vector<std::string>& lines) {
  lines.push_back(std::to_string(path.messages) + " messages in the last window; delay of " + bytes_text(path.bytes) +
                  " after the later post: " + seconds_text(path.seconds) + ", median of all pairs " +
                  seconds_text(path.typical));
  if (!path.exact) lines.push_back("its messages completed in one call with others, which may be the slow ones");
}

/// The requests for which ranks wait and whose peer is a culprit: "rank 1 waits for a request: MPI_Irecv from rank 2,
/// tag 2, 156 KiB".
void add_open_requests(const Finding& finding, const JobView& view, std::vector<std::string>& lines) {
  constexpr std::size_t most_lines = 4;
  std::size_t added = 0;
  const Members members(view.job.ranks);
  for (const auto& [number, rank] : members.ranks()) {
    if (!rank->alive) continue;
    for (const RequestSnapshot& request : rank->requests) {
      const CommunicatorSnapshot* const communicator = rank->communicator(request.communicator);
      const telemetry::CallKind kind = telemetry::kind_of(request.function, request.ordinal != 0);
      if (request.waiter == 0 || !communicator ||
          (kind != telemetry::CallKind::send && kind != telemetry::CallKind::receive))
        continue;
      const std::int32_t peer = members.world_rank(*communicator, request.peer);
      if (peer < 0 || !std::binary_search(finding.culprits.begin(), finding.culprits.end(), peer)) continue;
      if (++added > most_lines) return;
      lines.push_back("rank " + std::to_string(number) + " waits for a request: " + function_name(request.function) +
                      (kind == telemetry::CallKind::send ? " to rank " : " from rank ") + std::to_string(peer) +
                      (request.tag >= 0 ? ", tag " + std::to_string(request.tag) : "") + ", " +
                      bytes_text(request.bytes));
    }
  }
}

bool is_deadlock_by_lock(const Finding& finding, const JobView& view) {
  return finding.fault == Fault::deadlock &&
         std::any_of(finding.cycle.begin(), finding.cycle.end(), [&](std::int32_t number) {
           const RankSnapshot* const rank = find_rank(view, number);
           const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
           return thread && thread->current &&
                  telemetry::kind_of(thread->current->function, false) == telemetry::CallKind::lock;
         });
}

const char* slow_path_advice(const SlowPath& path) {
  if (!path.between_hosts)
    return "look for other processes on the ranks' cores, and for ranks whose memory is on another NUMA node";
  if (is_link(path.kind))
    return "look for errors and a lower rate on the links between the hosts, and for other traffic on their path";
  return "look at the host's network interface: errors, its rate, its PCIe link; run without this host to compare";
}

}  // namespace

int wait_status(const Finding& finding, const JobView& view) {
  if (finding.fault != Fault::crash) return -1;
  for (const std::int32_t culprit : finding.culprits)
    if (const RankSnapshot* const rank = find_rank(view, culprit); rank && rank->wait_status >= 0)
      return rank->wait_status;
  return -1;
}

std::string headline(const Finding& finding, const JobView& view, const JobStacks* stacks) {
  const std::string who = subject(finding, view);
  switch (finding.fault) {
    case Fault::crash: {
      const std::string place = crash_place(finding, stacks), in = place.empty() ? "" : " in " + place;
      if (const EndSnapshot* const end = noted(finding, view, EndKind::signal)) {
        const bool late = find_rank(view, finding.culprits[0])->state == ProcessState::finalized;
        return who + plural(finding, " was", " were") + " ended by " + signal_text(end->code) + in +
               (late ? ", after MPI_Finalize" : "");
      }
      if (const EndSnapshot* const end = noted(finding, view, EndKind::exception)) {
        const std::vector<std::string> text = lines_of(end->text);
        return who + plural(finding, " was", " were") + " ended by an exception of Python" +
               (text.size() > 1 ? " in " + text[1] : "") + (text.empty() ? "" : ": " + text[0]);
      }
      if (const EndSnapshot* const end = noted(finding, view, EndKind::mpi_error))
        return who + plural(finding, " was", " were") + " ended by an MPI error in " + call_of(finding, view) +
               (place.empty() ? "" : ", called in " + place) + ": " + error_text(*end);
      if (finding.cause == Cause::aborted) return who + " called MPI_Abort" + in;
      if (finding.cause == Cause::starting) return who + " ended before MPI_Init, in which the others were";
      return who + " " + end_text(wait_status(finding, view)) + in + " before MPI_Finalize";
    }
    case Fault::stopped:
      return who + plural(finding, " is ", " are ") +
             (finding.cause == Cause::traced ? "held by a debugger" : "stopped by a signal");
    case Fault::mismatch:
      if (finding.cause == Cause::finalized)
        return who + plural(finding, " has", " have") + " called MPI_Finalize while other ranks still need " +
               plural(finding, "it", "them");
      return (finding.mismatch->first != 0
                  ? "different reductions (operation, type, count or root) as one of the collective calls #" +
                        std::to_string(finding.mismatch->first) + " to #"
                  : std::string("different collective calls as #")) +
             std::to_string(finding.mismatch->ordinal) + " on " +
             (finding.mismatch->name.empty() ? "a communicator" : finding.mismatch->name) + ", by " + who;
    case Fault::unmatched_message:
      if (finding.tags)
        return "rank " + std::to_string(finding.tags->from) + " sent rank " + std::to_string(finding.tags->to) +
               " a message with tag " + std::to_string(finding.tags->sent) + ", but tag " +
               std::to_string(finding.tags->wanted) + " is expected";
      return who + plural(finding, " has", " have") + " left out a message that another rank waits for";
    case Fault::deadlock:
      return finding.cycle.size() == 1 ? "rank " + std::to_string(finding.cycle[0]) + " waits for itself"
                                       : "ranks wait for each other in a cycle: " + cycle_text(finding.cycle);
    case Fault::computation_hang:
      if (finding.cause == Cause::starting)
        return who + " " + verb(finding.cause, finding.culprits.size() == 1) + ", in which the others wait";
      if (finding.held_up.empty())
        return who + plural(finding, " has", " have") +
               " not ended after MPI_Finalize, while others have: " + plural(finding, "it ", "they ") +
               verb(finding.cause, finding.culprits.size() == 1);
      return who + plural(finding, " does", " do") +
             " not come to the MPI call that others wait for: " + plural(finding, "it ", "they ") +
             verb(finding.cause, finding.culprits.size() == 1);
    case Fault::communication_hang:
      return who + plural(finding, " is in its call", " are in their calls") +
             ", but the MPI library does not complete " + plural(finding, "it", "them");
    case Fault::starvation:
      return who + plural(finding, " makes", " make") + " other calls, but not the one that others wait for";
    case Fault::slow:
      return who + " computes " + percent_text(finding.factor - 1) +
             " longer than before, compared with the other ranks, which wait for it";
    case Fault::slow_communication: return finding.path ? slow_path_text(*finding.path) : who;
    case Fault::unreachable: {
      const RankSnapshot* const rank = finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
      return "no answer from " + (rank ? rank->host : "a host") + ", on which " + ranks_text(finding.culprits) +
             plural(finding, " is", " are");
    }
  }
  return who;
}

std::string working_text(const Finding& finding, const JobView& view, double seconds) {
  if (finding.held_up.empty())  // after MPI_Finalize
    return subject(finding, view) + " " + verb(finding.cause, finding.culprits.size() == 1) + " for " +
           seconds_text(seconds) + " after MPI_Finalize, while others have ended; this may be its work";
  const bool outside = finding.cause != Cause::starting;
  return subject(finding, view) + " " + verb(finding.cause, finding.culprits.size() == 1) +
         (outside ? " outside MPI for " : " for ") + seconds_text(seconds) + " while " + ranks_text(finding.held_up) +
         (finding.held_up.size() == 1 ? " waits" : " wait") + "; this may be its work";
}

std::vector<std::string> evidence(const Finding& finding, const JobView& view) {
  std::vector<std::string> lines;
  if (finding.mismatch)
    for (std::size_t i = 0; i < finding.mismatch->variants.size() && i < 4; ++i) {
      const CollectiveMismatch::Variant& variant = finding.mismatch->variants[i];
      const std::string reductions = i ? "others" : "one history of reductions";
      lines.push_back((finding.mismatch->first ? reductions : variant_text(variant)) + " by " +
                      ranks_text(variant.ranks));
    }
  if (finding.fault == Fault::unmatched_message && !finding.cycle.empty())
    lines.push_back("ranks wait for each other: " + cycle_text(finding.cycle));
  const bool by_lock = is_deadlock_by_lock(finding, view);
  if (by_lock)
    lines.push_back(ranks_text(finding.culprits) + plural(finding, " holds", " hold") +
                    " the lock of a window for which others wait in MPI_Win_lock");
  if (finding.fault == Fault::deadlock && !by_lock && finding.culprits.size() < finding.cycle.size())
    lines.push_back(ranks_text(finding.culprits) + plural(finding, " is", " are") +
                    " in another collective call than most of the deadlocked ranks");
  for (std::size_t i = 0; i < finding.culprits.size() && i < 3; ++i) {
    const RankSnapshot* const rank = find_rank(view, finding.culprits[i]);
    if (!rank) continue;
    if (rank->use.tracer != 0)
      lines.push_back("rank " + std::to_string(rank->world_rank) + " is traced by process " +
                      std::to_string(rank->use.tracer));
  }
  if (const EndSnapshot* const end = noted(finding, view, EndKind::signal); end && !end->text.empty())
    lines.push_back(lines_of(end->text)[0]);
  if (const EndSnapshot* const end = noted(finding, view, EndKind::exception)) {
    const std::vector<std::string> text = lines_of(end->text);
    for (std::size_t i = 2; i < text.size() && i < 6; ++i) lines.push_back("called by " + text[i]);
  }
  if (const EndSnapshot* const end = noted(finding, view, EndKind::mpi_error)) {
    const std::vector<std::string> text = lines_of(end->text);
    for (std::size_t i = 1; i < text.size() && i < 5; ++i) lines.push_back(text[i]);
  }
  if (finding.fault != Fault::crash) add_open_requests(finding, view, lines);
  if (finding.cause == Cause::starting) lines.push_back("it has no record: it may be on a host that is not watched");
  if (finding.fault == Fault::crash && finding.cause == Cause::killed && wait_status(finding, view) < 0 &&
      !noted(finding, view, EndKind::signal))
    lines.push_back("how it ended is known to the launcher only, which reports it");
  if (finding.fault == Fault::slow && finding.cpu_share >= 0)
    lines.push_back("it gets " + percent_text(finding.cpu_share) + " of a core");
  if (finding.path) add_slow_path_evidence(*finding.path, lines);
  if (!finding.held_up.empty()) lines.push_back("waiting: " + ranks_text(finding.held_up));
  return lines;
}

std::string advice(const Finding& finding, const JobView& view) {
  const RankSnapshot* const rank = finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
  const std::string pid = rank ? std::to_string(rank->pid) : "PID";
  switch (finding.fault) {
    case Fault::crash: {
      if (finding.cause == Cause::aborted) return "read what the rank printed before it called MPI_Abort";
      if (finding.cause == Cause::exception)
        return "the traceback is in the rank's output; 'python -m mpi4py SCRIPT' ends all ranks when one has an "
               "exception";
      if (finding.cause == Cause::mpi_error)
        return "look at the arguments of this call; the error handler of its communicator ends the job "
               "(MPI_ERRORS_ARE_FATAL)";
      if (const EndSnapshot* const end = noted(finding, view, EndKind::signal); end && end->text == "stack overflow\n")
        return "look for a recursion without end and for large local arrays; 'ulimit -s' shows the limit of the stack";
      if (noted(finding, view, EndKind::signal))
        return "look at this place; run with a debugger or core dumps to see its variables";
      if (finding.cause == Cause::starting) return "read what the rank and the launcher printed";
      const int status = wait_status(finding, view);
      if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return "SIGKILL often comes from the kernel's out-of-memory killer (dmesg) or the batch system's memory limit";
      if (status >= 0 && WIFEXITED(status)) return "the program ended itself; read what the rank printed";
      return "run again with core dumps (ulimit -c unlimited) and open the core with gdb";
    }
    case Fault::stopped:
      return finding.cause == Cause::traced ? "continue the rank in the debugger, or detach it"
                                            : "kill -CONT " + pid + " continues it";
    case Fault::mismatch:
      if (finding.mismatch && finding.mismatch->first != 0)
        return "the results of these calls are wrong or undefined; look for reductions whose arguments depend on the "
               "rank";
      return "compare the conditions under which the ranks come to these calls; all members of a communicator must "
             "make the same collective calls in the same order";
    case Fault::unmatched_message: return "compare destination, tag and communicator of the send and of the receive";
    case Fault::deadlock:
      if (is_deadlock_by_lock(finding, view))
        return "call MPI_Win_unlock before a call that waits for ranks that want the lock";
      return "post receives before sends that wait for them (MPI_Irecv), or use MPI_Sendrecv; make collective calls on "
             "several communicators in one order";
    case Fault::computation_hang:
      if (finding.cause == Cause::starting)
        return "look at what the rank does before MPI_Init, with a debugger or py-spy";
      if (finding.cause == Cause::uninterruptible) return "look at the file system or device in which it waits";
      if (finding.cause == Cause::computing) return "look at the loop in which it is; its stack is above";
      return "look at what it waits for; its stack is above";
    case Fault::communication_hang:
      return "look at the network and at the MPI library; 'bestride where --calls 8' has the last calls";
    case Fault::slow:
      return finding.cpu_share >= 0 && finding.cpu_share < 0.9
                 ? "look for other processes on its core, and for a limit of its CPU time"
                 : "look for a change of its work, or of its core's clock (thermal limit)";
    case Fault::slow_communication: return finding.path ? slow_path_advice(*finding.path) : "";
    case Fault::starvation:
      return "look at how the rank chooses what it receives next; gdb -p " + pid + " has its stack";
    case Fault::unreachable: return "look whether the host is up and can be reached: ping, and the batch system's log";
  }
  return "";
}

bool wants_stacks(const Finding& finding, const JobView& view) {
  if (finding.cause == Cause::exception) return false;  // the interpreter's
  if (finding.fault == Fault::crash) return !ranks_with_stacks(finding, view.job.ranks).empty();
  return finding.fault != Fault::slow && finding.fault != Fault::slow_communication &&
         finding.fault != Fault::unreachable;
}

std::vector<RankSnapshot> ranks_with_stacks(const Finding& finding, const std::vector<RankSnapshot>& ranks) {
  std::vector<RankSnapshot> chosen;
  for (const RankSnapshot& rank : ranks)
    if (finding.fault != Fault::crash ||
        (has_left_stack(rank) && std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank.world_rank)))
      chosen.push_back(rank);
  return chosen;
}

std::string finding_text(const Finding& finding, const JobView& view, const JobStacks* stacks, double seconds,
                         bool colour) {
  std::string text = colour ? "\033[1;31m" : "";
  text += "bestride: " + std::string(name(finding.fault)) + ": " + headline(finding, view, stacks) +
          (colour ? "\033[0m\n" : "\n");
  const auto line = [&](const std::string& content) { text += "  " + content + "\n"; };
  CallSites sites;
  if (const std::string words = summary(finding, view, sites, stacks); !words.empty()) line(words);
  std::vector<RankGroup> groups = rank_groups(view, sites);
  std::stable_sort(groups.begin(), groups.end(), [&](const RankGroup& a, const RankGroup& b) {
    const auto blamed = [&](const RankGroup& group) {
      return std::any_of(group.ranks.begin(), group.ranks.end(), [&](std::int32_t rank) {
        return std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank);
      });
    };
    return blamed(a) > blamed(b);
  });
  for (std::size_t i = 0; i < groups.size() && i < most_groups; ++i) line(groups[i].text());
  if (groups.size() > most_groups) line("and more ranks: the file has all");
  for (const std::string& fact : evidence(finding, view)) line("evidence: " + fact);
  if (stacks)
    for (const std::string& part : stack_lines(*stacks, most_stack_lines)) line("stack: " + part);
  const char* const since = finding.fault == Fault::crash ? ""
                            : finding.fault == Fault::slow || finding.fault == Fault::slow_communication
                                ? "for "
                                : "without progress for ";
  line((*since ? since + seconds_text(seconds) + "; " : "") + "confidence " + percent_text(finding.confidence));
  line("next: " + advice(finding, view));
  return text;
}

}  // namespace bestride::inline cli
