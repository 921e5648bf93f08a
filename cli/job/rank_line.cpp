// SPDX-License-Identifier: Apache-2.0
#include "cli/job/rank_line.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "cli/job/rank_list.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline cli {
namespace {

std::string gone_text(const RankSnapshot& rank) { return "gone (" + end_of_rank(rank) + ")"; }
/// "split from MPI_COMM_WORLD at grid.c:31", "MPI_Cart_create of cells at grid.c:31"; "" if it is not known.
std::string origin_text(const RankSnapshot& rank, const CommunicatorSnapshot& of, CallSites& sites) {
  if (of.site >= rank.sites.size()) return "";
  const std::string& function = function_name(rank.sites[of.site].function);
  const bool split = function == "MPI_Comm_split" || function == "MPI_Comm_split_type";
  const bool duplicate = function.find("dup") != std::string::npos;
  const char* const word = split ? "split" : duplicate ? "duplicate" : function.c_str();
  std::string text = word;
  for (const CommunicatorSnapshot& parent : rank.communicators)
    if (parent.uid != 0 && parent.uid == of.parent_uid && !parent.name.empty())
      text += (split ? " from " : " of ") + parent.name;
  const CallSites::Place place = sites.place(rank, of.site);
  const SourceLocation& at = place.location;
  const std::string file = at.file.substr(at.file.rfind('/') + 1);
  const std::string where = CallSites::is_of_interpreter(place) ? ""
                            : at.line > 0                       ? file + ":" + std::to_string(at.line)
                                                                : at.function;
  return text + (where.empty() ? "" : " at " + where);
}

/// "ranks 0,2,4", "all ranks", "4 ranks" if they are not evenly spaced.
std::string members_text(const RankSnapshot& rank, const CommunicatorSnapshot& of) {
  if (of.kind == CommunicatorKind::inter)
    return std::to_string(of.local_size) + " and " + std::to_string(of.size) + " ranks";
  if (of.size == rank.world_size) return "all ranks";
  if (!telemetry::is_evenly_spaced(of)) return std::to_string(of.size) + " ranks";
  constexpr std::int32_t most = 64;  // more are too many for a line, unless they are neighbors
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < of.size && (i < most || of.stride == 1); ++i)
    ranks.push_back(telemetry::world_rank_of(of, i));
  std::sort(ranks.begin(), ranks.end());
  return of.size > most && of.stride != 1 ? std::to_string(of.size) + " ranks" : ranks_text(ranks, 6);
}

void add(std::string& list, const std::string& word) {
  if (word.empty()) return;
  if (!list.empty()) list += ", ";
  list += word;
}

std::string peer_text(const char* word, std::int32_t peer, std::int32_t tag) {
  std::string text = word;
  if (peer == any_rank)
    text += " any rank";
  else if (peer == null_rank)
    text += " MPI_PROC_NULL";
  else if (peer == root_rank)
    text += " MPI_ROOT";
  else if (peer >= 0)
    text += " " + std::to_string(peer);
  else
    return "";
  if (tag >= 0) text += " tag " + std::to_string(tag);
  if (tag == any_tag) text += " any tag";
  return text;
}

/// "waits for a child process", "asleep", "waits in read of /tmp/input (FIFO)"; "sleeping" if the system call is not
/// known.
std::string sleep_text(const std::string& call) {
  if (call.empty()) return "sleeping";
  if (call == "sleep") return "asleep";
  return call.starts_with("wait ") ? "waits" + call.substr(4) : "waits in " + call;
}

/// "stopped (T)", "uninterruptible (D, nfs_wait)", "running (R)"; "" for a state that tells nothing. `call`: the system
/// call in which the thread is known to wait outside MPI, as ProcessWait has it.
std::string process_text(const ThreadSnapshot& thread, bool in_mpi, const std::string& call = "") {
  switch (thread.state) {
    case 'T': return "stopped (T)";
    case 't': return "stopped by a debugger (t)";
    case 'D': return "uninterruptible (D" + (thread.channel.empty() ? "" : ", " + thread.channel) + ")";
    case 'R': return in_mpi ? "" : "running (R)";
    case 'S':
      return in_mpi ? "" : sleep_text(call) + " (S" + (thread.channel.empty() ? "" : ", " + thread.channel) + ")";
    default: return "";
  }
}

bool is_halted(const ThreadSnapshot& thread) {
  return thread.state == 'T' || thread.state == 't' || thread.state == 'D';
}

/// "waits for rank 5", "waits for any of ranks 1-7", "may wait for ranks 2,3"; "" if it waits for nobody known.
std::string waits_text(const RankWaits& waits, unsigned slot) {
  for (const ThreadWait& thread : waits.threads) {
    if (thread.slot != slot) continue;
    std::vector<std::int32_t> certain, likely;
    bool any = thread.kind == WaitKind::any && thread.conditions.size() > 1;
    std::int32_t unseen = 0;
    for (const WaitCondition& condition : thread.conditions) {
      auto& ranks = condition.required ? certain : likely;
      ranks.insert(ranks.end(), condition.ranks.begin(), condition.ranks.end());
      if (condition.kind == WaitKind::any && thread.conditions.size() == 1) any = true;
      unseen = std::max(unseen, condition.unseen);
    }
    auto& ranks = certain.empty() ? likely : certain;
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (ranks.empty()) return unseen > 0 ? "may wait for ranks without a record here" : "";
    return std::string(certain.empty() ? "may wait for " : "waits for ") + (any && ranks.size() > 1 ? "any of " : "") +
           ranks_text(ranks);
  }
  return "";
}

/// The line of one rank, before lines are merged.
class Line {
 public:
  Line(const JobView& view, std::size_t index, CallSites& sites, const std::map<std::int32_t, std::string>& places,
       const std::vector<std::int32_t>* crashed)
      : view_(view), rank_(view.job.ranks[index]), activity_(view.activities[index]), sites_(sites), places_(places) {
    followed_ = crashed && std::find(crashed->begin(), crashed->end(), number_of(rank_)) == crashed->end() &&
                !rank_.end && rank_.wait_status >= 0 &&
                (WTERMSIG(rank_.wait_status) == SIGKILL || WTERMSIG(rank_.wait_status) == SIGTERM);
    group_.ranks = {number_of(rank_)};
    group_.pid = rank_.pid;
    const auto& culprits = view.diagnosis.culprits;
    group_.urgent = std::binary_search(culprits.begin(), culprits.end(), rank_.world_rank);
    thread_ = leading_thread(rank_);
    fill();
  }
  RankGroup take() { return std::move(group_); }

 private:
  void rest(const std::string& text) {
    if (text.empty()) return;
    if (!group_.rest.empty()) group_.rest += "  ";
    group_.rest += text;
  }
  void at(std::uint32_t site) {
    if (const std::string text = sites_.text(rank_, site); !text.empty()) rest("at " + text);
  }
  void since(std::uint64_t ticks) { group_.least_seconds = group_.most_seconds = rank_.seconds_since(ticks); }
  void last_call() {
    if (!thread_ || thread_->finished.empty()) return;
    const CallSnapshot& last = thread_->finished.back();
    rest("last " + call_text(rank_, last, sites_));
    at(last.site);
  }

  void fill() {
    if (!rank_.alive) return fill_ended();
    if (!thread_) {
      group_.state = rank_.state == ProcessState::starting ? "before MPI_Init" : "no MPI call yet";
    } else if (thread_->moving) {
      group_.state = "in and out of MPI calls";
      last_call();
    } else if (thread_->current) {
      group_.state = call_text(rank_, *thread_->current, sites_);
      since(thread_->current->entered);
      rest(process_text(*thread_, true));
      const auto known = places_.find(rank_.world_rank);
      known != places_.end() ? rest("at " + known->second) : at(thread_->current->site);
      waits();
    } else if (thread_->in_mpi) {
      group_.state = "in an MPI call (its record is incomplete)";
      rest(process_text(*thread_, true));
    } else {
      fill_outside();
    }
    if (thread_ && is_halted(*thread_)) group_.urgent = true;
    if (activity_ == Activity::calling) rest("progressing");
    if (const std::size_t others = other_waiting_threads()) rest("+" + std::to_string(others) + " threads in MPI");
  }

  void fill_outside() {
    const bool polls = activity_ == Activity::polling;
    group_.state = polls ? "polls with " + function_name(thread_->poll_function) : "not in MPI";
    if (rank_.state == ProcessState::finalized) group_.state = "after MPI_Finalize";
    since(thread_->last_left);
    rest(process_text(*thread_, polls, rank_.wait.call));
    last_call();
    if ((polls && thread_->polled_known) || rank_.wait.holder != 0) waits();
  }

  void waits() {
    if (const RankWaits* const waits = view_.graph.find(rank_.world_rank);
        waits && &view_.job.ranks[waits->snapshot] == &rank_)
      rest(waits_text(*waits, thread_->slot));
  }

  void fill_ended() {
    if (!rank_.gone()) {
      group_.state = "ended after MPI_Finalize";
      return;
    }
    group_.urgent = true;
    group_.state = followed_ ? "ended by the launcher because of that, with " + signal_text(WTERMSIG(rank_.wait_status))
                             : gone_text(rank_);
    if (!thread_) return;
    if (thread_->current) {
      rest("was in " + call_text(rank_, *thread_->current, sites_));
      at(thread_->current->site);
    } else {
      last_call();
    }
  }

  std::size_t other_waiting_threads() const {
    return static_cast<std::size_t>(
        std::count_if(rank_.threads.begin(), rank_.threads.end(),
                      [this](const ThreadSnapshot& t) { return &t != thread_ && t.in_mpi; }));
  }

  const JobView& view_;
  const RankSnapshot& rank_;
  Activity activity_;
  CallSites& sites_;
  const std::map<std::int32_t, std::string>& places_;
  const ThreadSnapshot* thread_;
  bool followed_ = false;  ///< the launcher has ended it because another one has crashed
  RankGroup group_;
};

}  // namespace

std::string signal_text(int signal) {
  const char* const text = strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (text ? text : "unknown") + ")";
}

bool has_finalized(const RankSnapshot& rank) {
  if (rank.state == ProcessState::finalized) return true;
  return std::any_of(rank.threads.begin(), rank.threads.end(), [](const ThreadSnapshot& thread) {
    return !thread.current && !thread.finished.empty() &&
           function_name(thread.finished.back().function) == "MPI_Finalize";
  });
}

std::string end_of_rank(const RankSnapshot& rank) {
  if (rank.has_fault()) {
    const std::string first = rank.end->text.substr(0, rank.end->text.find('\n'));
    switch (rank.end->kind) {
      case EndKind::signal:
        return "ended by " + signal_text(rank.end->code) + (has_finalized(rank) ? " after MPI_Finalize" : "");
      case EndKind::exception: return "ended by an exception of Python: " + first;
      case EndKind::mpi_error: return "ended by an MPI error: " + first.substr(0, first.find(", error stack:"));
      case EndKind::exit:
      case EndKind::system_exit: break;
    }
  }
  if (telemetry::has_aborted(rank)) return "called MPI_Abort";
  const std::string when = has_finalized(rank) ? "after MPI_Finalize" : "before MPI_Finalize";
  if (rank.wait_status >= 0 && WIFEXITED(rank.wait_status))
    return "exited with code " + std::to_string(WEXITSTATUS(rank.wait_status)) + " " + when;
  if (rank.wait_status >= 0) return "killed by " + signal_text(WTERMSIG(rank.wait_status)) + " " + when;
  return "killed, or ended by _exit(), " + when;
}

const ThreadSnapshot* leading_thread(const RankSnapshot& rank) {
  const ThreadSnapshot* leading = nullptr;
  const auto key = [](const ThreadSnapshot& t) {
    // In a call, since when; else left when.
    return std::tuple(t.in_mpi, t.current ? ~t.current->entered : 0, t.last_left);
  };
  for (const ThreadSnapshot& thread : rank.threads)
    if ((thread.calls > 0 || thread.polls > 0) && (!leading || key(thread) > key(*leading))) leading = &thread;
  return leading;
}

std::string communicator_text(const RankSnapshot& rank, std::uint32_t index, CallSites& sites) {
  if (index == no_index) return "";
  const CommunicatorSnapshot* const communicator = rank.communicator(index);
  static constexpr const char* kinds[] = {"communicator", "communicator", "intercommunicator", "window", "file"};
  const std::string kind = kinds[communicator ? static_cast<std::size_t>(communicator->kind) : 0];
  if (!communicator) return kind + " " + std::to_string(index);
  if (!communicator->name.empty())
    return communicator->kind < CommunicatorKind::window ? communicator->name : kind + " " + communicator->name;
  const std::string origin = origin_text(rank, *communicator, sites);
  return kind + " of " + members_text(rank, *communicator) + (origin.empty() ? "" : " (" + origin + ")");
}

std::string communicator_text(const JobView& view, std::uint64_t uid) {
  CallSites sites;
  for (const RankSnapshot& rank : view.job.ranks)
    for (const CommunicatorSnapshot& communicator : rank.communicators)
      if (uid != 0 && communicator.uid == uid) return communicator_text(rank, communicator.index, sites);
  return "a communicator";
}

std::string call_text(const RankSnapshot& rank, const CallSnapshot& call, CallSites& sites) {
  const std::string name = function_name(call.function);
  const telemetry::CallKind kind = kind_of(call.function, call.ordinal != 0);
  std::string arguments = communicator_text(rank, call.communicator, sites);
  if (call.ordinal != 0) arguments += (arguments.empty() ? "#" : " #") + std::to_string(call.ordinal);
  switch (kind) {
    case telemetry::CallKind::from_root:
    case telemetry::CallKind::to_root: add(arguments, peer_text("root", call.peer, no_tag)); break;
    case telemetry::CallKind::receive: add(arguments, peer_text("from", call.peer, call.tag)); break;
    case telemetry::CallKind::exchange:
      add(arguments, peer_text("to", call.peer, call.tag));
      add(arguments, peer_text("from", call.second_peer, call.second_tag));
      break;
    case telemetry::CallKind::wait_all:
    case telemetry::CallKind::wait_any:
      if (call.second_tag > 0)
        add(arguments, std::to_string(call.second_tag) + (call.second_tag == 1 ? " request" : " requests"));
      break;
    default:
      if (call.ordinal == 0) add(arguments, peer_text("to", call.peer, call.tag));
  }
  if (call.bytes > 0) add(arguments, bytes_text(call.bytes));
  return name + "(" + arguments + ")";
}

std::string short_state(const JobView& view, const RankSnapshot& rank) {
  if (!rank.alive && !view.ended()) return rank.gone() ? gone_text(rank) : "ended";
  const ThreadSnapshot* const thread = leading_thread(rank);
  if (!thread) return "has made no MPI call";
  const std::string process = process_text(*thread, thread->in_mpi);
  std::string text = thread->current                    ? "in " + function_name(thread->current->function)
                     : thread->in_mpi || thread->moving ? "in MPI calls"
                                                        : "not in MPI";
  const std::size_t index = static_cast<std::size_t>(&rank - view.job.ranks.data());
  if (view.activities[index] == Activity::polling) text = "polls with " + function_name(thread->poll_function);
  add(text, process);
  return text;
}

std::string RankGroup::text() const {
  std::string text = ranks[0] >= 0       ? ranks_text(ranks)
                     : ranks.size() == 1 ? "process"
                                         : std::to_string(ranks.size()) + " processes";
  if (ranks.size() == 1) text += "  pid " + std::to_string(pid);
  text += "  " + state;
  if (most_seconds > 0) {
    const std::string least = seconds_text(least_seconds), most = seconds_text(most_seconds);
    text += "  for " + (least == most ? least : least + " to " + most);
  }
  return rest.empty() ? text : text + "  " + rest;
}

std::vector<RankGroup> rank_groups(const JobView& view, CallSites& sites,
                                   const std::map<std::int32_t, std::string>& places,
                                   const std::vector<std::int32_t>* crashed) {
  std::vector<RankGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < view.job.ranks.size(); ++i) {
    RankGroup line = Line(view, i, sites, places, crashed).take();
    const auto [at, is_new] = known.try_emplace({line.state, line.rest}, groups.size());
    if (is_new) {
      groups.push_back(std::move(line));
      continue;
    }
    RankGroup& group = groups[at->second];
    // Of one rank there may be several records; before MPI_Init they are in the order of their pids.
    const auto place = std::lower_bound(group.ranks.begin(), group.ranks.end(), line.ranks[0]);
    if (place == group.ranks.end() || *place != line.ranks[0] || line.ranks[0] < 0)
      group.ranks.insert(place, line.ranks[0]);
    group.least_seconds = std::min(group.least_seconds, line.least_seconds);
    group.most_seconds = std::max(group.most_seconds, line.most_seconds);
    group.urgent = group.urgent || line.urgent;
  }
  return groups;
}

}  // namespace bestride::inline cli
