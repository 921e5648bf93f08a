// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/finding_text.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "cli/job/dropped.hpp"
#include "cli/job/python_stacks.hpp"
#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/watch/advice.hpp"
#include "cli/watch/deadlock_text.hpp"
#include "cli/watch/finding_facts.hpp"
#include "cli/watch/mismatch_text.hpp"
#include "cli/watch/request_text.hpp"
#include "cli/watch/summary.hpp"
#include "cli/watch/unmatched_text.hpp"
#include "telemetry/detector/rank_facts.hpp"
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

/// "advect (field.c:12)": the place of the culprits; without lines their innermost frame. "" if they crashed in
/// different functions, or if their stacks are not known.
std::string crash_place(const Finding& finding, const JobView& view, const JobStacks* stacks) {
  if (!stacks) return "";
  NamedFrame common;
  for (const std::int32_t culprit : finding.culprits) {
    const auto known = stacks->places.find(culprit);
    if (known == stacks->places.end() || known->second.line <= 0) {
      common = {};
      break;
    }
    const NamedFrame& place = known->second;
    if (common.function.empty()) common = place;
    if (common.function != place.function || common.file != place.file) return "";
    if (common.line != place.line) common.line = 0;
  }
  if (common.function.empty()) {
    const StackNode* const node = stacks->tree.empty() ? nullptr : &stacks->tree.front();
    if (!node || !node->children.empty() || node->ranks != finding.culprits) return "";
    common = node->frames.back();
  }
  // All frames are a library's, since outer ones are missing or main has returned; or the interpreter's.
  const RankSnapshot* const rank = find_rank(view, finding.culprits.front());
  if (is_library_thread({common}) || (rank && runs_python(*rank) && !is_program_source(common))) return "";
  return frame_text(common);
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

/// The line of an exception's text that has the innermost frame of the program; the first frame if all are in mpi4py.
/// 0 if no frame is known.
std::size_t frame_of_exception(const std::vector<std::string>& text) {
  for (std::size_t i = 1; i < text.size(); ++i)
    if (!text[i].starts_with("mpi4py.")) return i;
  return text.size() > 1 ? 1 : 0;
}

/// "load (input.py:12)" of "load (/home/me/solver/input.py:12)", as the frames of other programs are named.
std::string without_folder(const std::string& frame) {
  const std::size_t begin = frame.rfind(" (") == frame.npos ? frame.npos : frame.rfind(" (") + 2;
  const std::size_t slash = frame.rfind('/');
  return begin == frame.npos || slash == frame.npos || slash < begin ? frame
                                                                     : frame.substr(0, begin) + frame.substr(slash + 1);
}

/// "MPI_Recv" or "an MPI call", in which it is.
std::string call_of(const Finding& finding, const JobView& view) {
  const RankSnapshot* const rank = find_rank(view, finding.culprits[0]);
  const ThreadSnapshot* const thread = rank ? leading_thread(*rank) : nullptr;
  if (thread && thread->current) return function_name(thread->current->function);
  return thread && !thread->finished.empty() ? function_name(thread->finished.back().function) : "an MPI call";
}

std::string end_text(int wait_status) {
  if (wait_status < 0) return "ended";
  if (WIFSIGNALED(wait_status)) {
    return "was killed by " + signal_text(WTERMSIG(wait_status)) + (WCOREDUMP(wait_status) ? ", core dumped," : "");
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

const char* verb(Cause cause, bool one) {
  switch (cause) {
    case Cause::computing: return one ? "computes" : "compute";
    case Cause::sleeping: return one ? "sleeps" : "sleep";
    case Cause::blocked: return one ? "is blocked" : "are blocked";
    case Cause::waiting: return one ? "waits" : "wait";
    case Cause::transferring: return one ? "reads or writes" : "read or write";
    case Cause::uninterruptible: return one ? "waits in the kernel" : "wait in the kernel";
    case Cause::starting: return one ? "has not called MPI_Init" : "have not called MPI_Init";
    case Cause::polling: return one ? "polls, and finds nothing" : "poll, and find nothing";
    default: return one ? "is outside MPI" : "are outside MPI";
  }
}

/// A rank waits outside MPI for a lock that a culprit holds.
bool holds_lock(const Finding& finding, const JobView& view) {
  return std::any_of(finding.held_up.begin(), finding.held_up.end(), [&](std::int32_t waiter) {
    const auto* const why = view.graph.edge(waiter, finding.culprits.front());
    return why && why->holds_lock;
  });
}

/// " outside MPI" unless the verb says where.
const char* outside(Cause cause) {
  const bool is_said = cause == Cause::polling || cause == Cause::starting || cause == Cause::unknown;
  return is_said ? "" : " outside MPI";
}

/// " (read of standard input)": the system calls in which most of the culprits are; "" if they are not known.
std::string wait_calls(const Finding& finding, const JobView& view) {
  std::map<std::string, std::size_t> calls;
  for (const std::int32_t culprit : finding.culprits)
    if (const RankSnapshot* const rank = find_rank(view, culprit)) ++calls[rank->wait.call];
  const auto most =
      std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == calls.end() || most->first.empty() ? "" : " (" + most->first + ")";
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

/// The lines of Python programs in which the main threads of ranks are.
std::map<std::int32_t, std::string> places_of_python(const JobView& view, const JobStacks* stacks) {
  std::map<std::int32_t, std::string> places;
  if (!stacks) return places;
  for (const auto& [number, place] : stacks->places) {
    const RankSnapshot* const rank = find_rank(view, number);
    const ThreadSnapshot* const thread = rank && runs_python(*rank) ? leading_thread(*rank) : nullptr;
    if (thread && thread->tid == rank->pid && place.line > 0 && is_program_source(place))
      places[number] = frame_text(place);
  }
  return places;
}

}  // namespace

std::string headline(const Finding& finding, const JobView& view, const JobStacks* stacks) {
  const std::string who = subject(finding, view);
  switch (finding.fault) {
    case Fault::crash: {
      const std::string place = crash_place(finding, view, stacks), in = place.empty() ? "" : " in " + place;
      if (const EndSnapshot* const end = noted(finding, view, EndKind::signal)) {
        const bool late = has_finalized(*find_rank(view, finding.culprits[0]));
        return who + plural(finding, " was", " were") + " ended by " + signal_text(end->code) + in +
               (late ? ", after MPI_Finalize" : "");
      }
      if (const EndSnapshot* const end = noted(finding, view, EndKind::exception)) {
        const std::vector<std::string> text = lines_of(end->text);
        const std::size_t frame = frame_of_exception(text);
        return who + plural(finding, " was", " were") + " ended by an exception of Python" +
               (frame ? " in " + without_folder(text[frame]) : "") + (text.empty() ? "" : ": " + text[0]);
      }
      if (const EndSnapshot* const end = noted(finding, view, EndKind::mpi_error))
        return who + plural(finding, " was", " were") + " ended by an MPI error in " + call_of(finding, view) +
               (place.empty() ? "" : ", called in " + place) + ": " + error_text(*end);
      if (finding.cause == Cause::aborted) return who + " called MPI_Abort" + in;
      if (finding.cause == Cause::starting)
        return who + " ended before MPI_Init, in which the others " + (finding.without_process ? "are" : "were");
      const RankSnapshot* const rank = find_rank(view, finding.culprits[0]);
      const bool starting = rank && rank->state == ProcessState::starting;
      return who + " " + end_text(wait_status(finding, view)) + in +
             (starting                       ? " in MPI_Init"
              : rank && has_finalized(*rank) ? " after MPI_Finalize"
                                             : " before MPI_Finalize");
    }
    case Fault::stopped:
      return who + plural(finding, " is ", " are ") +
             (finding.cause == Cause::traced ? "held by a debugger" : "stopped by a signal");
    case Fault::mismatch: return mismatch_headline(finding, view, who);
    case Fault::unmatched_message: return unmatched_headline(finding, view, who);
    case Fault::deadlock: return deadlock_headline(finding, view);
    case Fault::computation_hang:
      if (finding.cause == Cause::starting)
        return who + " " + verb(finding.cause, finding.culprits.size() == 1) + ", in which the others wait";
      if (finding.whole_job)
        return "no rank makes progress, and none waits for another: " + who + " " +
               verb(finding.cause, finding.culprits.size() == 1) + outside(finding.cause);
      if (finding.held_up.empty())
        return who + plural(finding, " has", " have") +
               " not ended after MPI_Finalize, while others have: " + plural(finding, "it ", "they ") +
               verb(finding.cause, finding.culprits.size() == 1);
      return who + plural(finding, " does", " do") +
             (holds_lock(finding, view) ? " not release the lock" : " not reach the MPI call") +
             " that others wait for: " + plural(finding, "it ", "they ") +
             verb(finding.cause, finding.culprits.size() == 1) +
             (finding.cause == Cause::waiting        ? " outside MPI" + wait_calls(finding, view)
              : finding.cause == Cause::transferring ? wait_calls(finding, view)
                                                     : "");
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
  if (finding.whole_job)
    return "no rank makes progress for " + seconds_text(seconds) +
           ", and none waits for another: " + subject(finding, view) + " " +
           verb(finding.cause, finding.culprits.size() == 1) + outside(finding.cause) + wait_calls(finding, view) +
           "; this may be " + plural(finding, "its", "their") + " work";
  if (finding.fault == Fault::deadlock || finding.fault == Fault::unmatched_message ||
      finding.fault == Fault::mismatch) {
    std::vector<std::int32_t> ranks = finding.cycle;
    std::sort(ranks.begin(), ranks.end());
    const bool is_explained = finding.tags || finding.wrong_peer || finding.omitted;
    return ranks_text(ranks) + " wait for each other for " + seconds_text(seconds) +
           ", but poll, or have other threads that may call MPI; this may be their work" +
           (is_explained ? "; if it is not: " + headline(finding, view, nullptr) : "");
  }
  if (finding.fault == Fault::starvation)
    return subject(finding, view) + plural(finding, " makes", " make") + " other calls for " + seconds_text(seconds) +
           " while " + ranks_text(finding.held_up) + (finding.held_up.size() == 1 ? " waits" : " wait") +
           "; this may be " + plural(finding, "its", "their") + " work";
  if (finding.held_up.empty())  // after MPI_Finalize
    return subject(finding, view) + " " + verb(finding.cause, finding.culprits.size() == 1) + " for " +
           seconds_text(seconds) + " after MPI_Finalize, while others have ended; this may be " +
           plural(finding, "its", "their") + " work";
  return subject(finding, view) + " " + verb(finding.cause, finding.culprits.size() == 1) + outside(finding.cause) +
         (finding.cause == Cause::waiting ? wait_calls(finding, view) : "") + " for " + seconds_text(seconds) +
         " while " + ranks_text(finding.held_up) + (finding.held_up.size() == 1 ? " waits" : " wait") +
         "; this may be " + plural(finding, "its", "their") + " work";
}

std::string over_text(const Finding& finding, const JobView& view, double seconds) {
  const std::string lasted = " for " + seconds_text(seconds), who = subject(finding, view);
  switch (finding.fault) {
    case Fault::stopped:
      return "the job goes on: " + who + plural(finding, " was ", " were ") +
             (finding.cause == Cause::traced ? "held by a debugger" : "stopped by a signal") + lasted;
    case Fault::unreachable: return "the job goes on: there was no answer from the host of " + who + lasted;
    case Fault::slow:
      return who + plural(finding, " is", " are") + " as fast as before again, after " + seconds_text(seconds);
    case Fault::slow_communication: return "the slow communication is over, after " + seconds_text(seconds);
    default: break;
  }
  return "the job goes on: the " + std::string(name(finding.fault)) + (finding.whole_job ? "" : " of " + who) +
         ", reported above, lasted " + seconds_text(seconds);
}

std::vector<std::string> evidence(const Finding& finding, const JobView& view) {
  std::vector<std::string> lines;
  for (std::string& text : mismatch_evidence(finding, view)) lines.push_back(std::move(text));
  if ((finding.fault == Fault::unmatched_message || finding.epoch || finding.omitted) && !finding.cycle.empty())
    lines.push_back("ranks wait for each other: " + cycle_text(finding.cycle));
  if (finding.omitted && finding.omitted->witness >= 0)
    lines.push_back("rank " + std::to_string(finding.omitted->witness) + " has come to the same call as rank " +
                    std::to_string(finding.omitted->by) + ", and has made " + function_name(finding.omitted->function) +
                    " #" + std::to_string(finding.omitted->ordinal) + " before");
  else if (finding.omitted)
    lines.push_back("rank " + std::to_string(finding.omitted->by) + " has begun " +
                    std::to_string(finding.omitted->since) + (finding.omitted->receives ? " receives" : " sends") +
                    " since its last " + function_name(finding.omitted->function) + ", before between two of them " +
                    std::to_string(finding.omitted->usual));
  const std::string lock = lock_evidence(finding, view);
  if (!lock.empty()) lines.push_back(lock);
  if (finding.fault == Fault::deadlock && lock.empty() && finding.culprits.size() < finding.cycle.size())
    lines.push_back(ranks_text(finding.culprits) + plural(finding, " is", " are") +
                    " in another collective call than most of the deadlocked ranks");
  for (std::size_t i = 0; i < finding.culprits.size() && i < 3; ++i) {
    const RankSnapshot* const rank = find_rank(view, finding.culprits[i]);
    if (!rank) continue;
    if (rank->use.tracer != 0)
      lines.push_back("rank " + std::to_string(rank->world_rank) + " is traced by process " +
                      std::to_string(rank->use.tracer));
    if (const std::vector<NamedFrame> raised = interpreted_frames(rank->system_exit);
        !raised.empty() && (!rank->alive || rank->state >= ProcessState::finalizing))
      if (const NamedFrame* const frame = program_line(raised))
        lines.push_back("rank " + std::to_string(rank->world_rank) + " has raised SystemExit in " + frame_text(*frame));
  }
  if (const EndSnapshot* const end = noted(finding, view, EndKind::signal); end && !end->text.empty())
    lines.push_back(lines_of(end->text)[0]);
  if (const EndSnapshot* const end = noted(finding, view, EndKind::exception)) {
    const std::vector<std::string> text = lines_of(end->text);
    const std::size_t frame = frame_of_exception(text);
    for (std::size_t i = 1; i < text.size() && i < frame + 5; ++i)
      if (i == 1 || i >= frame) lines.push_back((i == 1 ? "raised in " : "called by ") + text[i]);
  }
  if (const EndSnapshot* const end = noted(finding, view, EndKind::mpi_error)) {
    // The last line says what was wrong; between are the functions of the library that pass the error on.
    const std::vector<std::string> text = lines_of(end->text);
    for (std::size_t i = 1; i < text.size(); ++i)
      if ((i < 4 || i + 1 == text.size()) && !text[i].ends_with(": ")) lines.push_back(text[i]);
    for (std::string& text_of_request : requests_of_failed_call(*find_rank(view, finding.culprits[0]), view))
      lines.push_back(std::move(text_of_request));
  }
  if (finding.fault != Fault::crash)
    for (std::string& text : open_requests(finding, view)) lines.push_back(std::move(text));
  if (finding.without_process)
    lines.push_back("all ranks were started on this host, and no process has " +
                    std::string(plural(finding, "this rank", "these ranks")) + " any more");
  else if (finding.cause == Cause::starting && finding.confidence < 0.9)
    lines.push_back("it has no record: it may be on a host that is not watched");
  if (finding.fault == Fault::crash && finding.cause == Cause::killed && wait_status(finding, view) < 0 &&
      !noted(finding, view, EndKind::signal))
    lines.push_back("how it ended is known to the launcher only, which reports it");
  if (finding.fault == Fault::slow && finding.cpu_share >= 0)
    lines.push_back("it gets " + percent_text(finding.cpu_share) + " of a core");
  if (finding.path) add_slow_path_evidence(*finding.path, lines);
  if (finding.fault != Fault::crash)
    for (std::string& text : dropped_lines(view.job.ranks)) lines.push_back(std::move(text));
  if (!finding.held_up.empty()) {
    const bool past = finding.fault == Fault::crash && !finding.without_process, one = finding.held_up.size() == 1;
    lines.push_back(ranks_text(finding.held_up) + (past ? " waited" : one ? " waits" : " wait") + " because of this");
  }
  return lines;
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
        (has_left_stack(rank) && std::binary_search(finding.culprits.begin(), finding.culprits.end(), number_of(rank))))
      chosen.push_back(rank);
  return chosen;
}

std::string finding_text(const Finding& finding, const JobView& view, const JobStacks* stacks, double seconds,
                         bool color) {
  std::string text = color ? "\033[1;31m" : "";
  text += "bestride: " + std::string(name(finding.fault)) + ": " + headline(finding, view, stacks) +
          (color ? "\033[0m\n" : "\n");
  const auto line = [&](const std::string& content) { text += "  " + content + "\n"; };
  CallSites sites;
  if (const std::string words = summary(finding, view, sites, stacks); !words.empty()) line(words);
  const std::map<std::int32_t, std::string> places = places_of_python(view, stacks);
  std::vector<RankGroup> groups = rank_groups(
      view, sites, places, finding.fault == Fault::crash && finding.confidence >= 0.8 ? &finding.culprits : nullptr);
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
