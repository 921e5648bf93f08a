// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/wait_graph.hpp"

#include <algorithm>
#include <string>

#include "telemetry/waits/amounts.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/collective_progress.hpp"
#include "telemetry/waits/members.hpp"
#include "telemetry/waits/message_numbers.hpp"
#include "telemetry/waits/messages.hpp"
#include "telemetry/waits/mismatch.hpp"

namespace bestride::inline telemetry {
namespace {

/// The part of a call or request that determines for which ranks it waits.
struct Pending {
  std::uint16_t function;
  std::uint32_t communicator;
  std::int32_t peer;
  std::int32_t tag;
  std::uint32_t ordinal;
  std::uint64_t bytes = 0;
  bool open = false;         ///< it is certainly not complete: the call waits for nothing else, or for any one
  std::uint32_t number = 0;  ///< RequestRecord::number
};

/// With their default configuration, MPI libraries do not send messages of this size and more before their receiver
/// requests them. A shorter message may be in transit already, although its request is not complete.
constexpr std::uint64_t surely_rendezvous = 256 << 10;

/// True if a send cannot be complete before its receiver has begun to receive.
bool needs_receiver(const Pending& send) {
  return send.open || send.bytes >= surely_rendezvous || is_synchronous_send(send.function);
}

/// What is found once for all ranks.
struct JobFacts {
  explicit JobFacts(const Members& all) : members(all), progress(all), numbers(all) {
    std::vector<std::int32_t> ranks;
    for (const auto& [number, rank] : all.ranks()) ranks.push_back(number);
    singles = RankSet::singles(std::move(ranks));
  }
  RankSet single(std::int32_t rank) const {
    const std::size_t position = members.position(rank);
    return position != Members::none ? singles[position] : RankSet{rank};
  }

  const Members& members;
  CollectiveProgress progress;
  MessageNumbers numbers;
  std::vector<RankSet> singles;  ///< the set of each rank, in the order of the members
};

/// The conditions of one thread.
class ThreadConditions {
 public:
  ThreadConditions(JobFacts& job, const RankSnapshot& rank, const ThreadSnapshot& thread) : job_(job), rank_(rank) {
    wait_.slot = thread.slot;
    if (thread.current)
      add_call(*thread.current);
    else if (thread.polling)
      add_polled(thread);
    else
      wait_.resolved = false;  // torn
  }
  ThreadWait take() {
    wait_.only_peer = only_peer();
    return std::move(wait_);
  }

 private:
  std::int32_t only_peer() const {
    if (!wait_.resolved || wait_.kind != WaitKind::all) return no_rank;
    std::int32_t peer = no_rank;
    for (const WaitCondition& condition : wait_.conditions) {
      if (condition.ordinal != 0 || condition.ranks.size() != 1 || condition.unseen != 0) return no_rank;
      const std::int32_t rank = condition.ranks.front();
      // The rank's own call progresses its messages to itself.
      if (rank == rank_.world_rank && !condition.required) continue;
      if (condition.matched || rank == rank_.world_rank || (peer != no_rank && peer != rank)) return no_rank;
      peer = rank;
    }
    return peer;
  }

  void add_call(const CallSnapshot& call) {
    const CallKind kind = kind_of(call.function, call.ordinal != 0);
    switch (kind) {
      case CallKind::wait_all:
      case CallKind::wait_any:
        wait_.kind = kind == CallKind::wait_any ? WaitKind::any : WaitKind::all;
        add_requests(call.second_tag == 1 || function_name(call.function) == "MPI_Wait",
                     [this](const RequestSnapshot& request) { return request.waiter == wait_.slot + 1; });
        // A request that it has not counted may be the complete one.
        if (wait_.kind == WaitKind::any && rank_.requests_dropped > 0) wait_.resolved = false;
        return;
      case CallKind::exchange:
        each_message(call, [this](const Message& m) {
          add_message({m.function, m.communicator, m.peer, m.tag, 0, m.bytes}, m.kind);
        });
        return;
      case CallKind::finalize: add_finalize(call.function); return;
      case CallKind::lock: add_lock(call); return;
      case CallKind::access: add_epochs(call.function, call.communicator, true); return;
      case CallKind::exposure: add_epochs(call.function, call.communicator, false); return;
      default:
        add({call.function, call.communicator, call.peer, call.tag, call.ordinal, call.bytes, /*open=*/true});
        return;
    }
  }

  /// If what it polls is not known, it may be any request that no call waits for, and any message.
  void add_polled(const ThreadSnapshot& thread) {
    wait_.polling = true;
    if (kind_of(thread.poll_function, false) == CallKind::exposure)
      return add_epochs(thread.poll_function, no_index, false);
    const bool all = thread.polls_one && function_name(thread.poll_function) == "MPI_Testall";
    wait_.kind = all ? WaitKind::all : WaitKind::any;
    add_requests(false, [&](const RequestSnapshot& request) {
      return thread.polled_known ? request.poller == thread.slot + 1 : request.waiter == 0;
    });
    wait_.probing = wait_.conditions.empty() && !thread.probes.empty();
    if (wait_.probing) wait_.resolved = true;
    for (const ProbeSnapshot& probe : thread.probes)
      add_message({probe.function, probe.communicator, probe.peer, probe.tag, 0, 0, /*open=*/true}, CallKind::receive);
    if (!thread.polled_known) wait_.resolved = false;
  }

  void add(const Pending& pending) {
    const CallKind kind = kind_of(pending.function, pending.ordinal != 0);
    if (pending.ordinal != 0)
      add_collective(pending, kind);
    else if (kind == CallKind::send || kind == CallKind::receive)
      add_message(pending, kind);
    else if (kind == CallKind::one_sided)
      add_one_sided(pending);
    else if (kind != CallKind::local)
      wait_.resolved = false;
  }

  /// `one`: there is at most one.
  template <class Select>
  void add_requests(bool one, Select select) {
    const std::size_t before = wait_.conditions.size();
    wait_.conditions.reserve(before + rank_.requests.size());
    for (const RequestSnapshot& request : rank_.requests) {
      if (!select(request)) continue;
      const CallKind kind = kind_of(request.function, request.ordinal != 0);
      // A request has only one peer; one that waits for nobody satisfies an OR.
      if (kind == CallKind::exchange || (kind == CallKind::local && wait_.kind == WaitKind::any))
        wait_.resolved = false;
      add({request.function, request.communicator, request.peer, request.tag, request.ordinal, request.bytes,
           /*open=*/one || wait_.kind == WaitKind::any, request.number});
    }
    if (wait_.conditions.size() == before) wait_.resolved = false;  // requests that are not recorded
  }

  /// Several requests often wait for the same.
  void append(WaitCondition condition) {
    if (std::find(wait_.conditions.begin(), wait_.conditions.end(), condition) == wait_.conditions.end())
      wait_.conditions.push_back(std::move(condition));
  }

  void add_message(const Pending& pending, CallKind kind) {
    if (pending.peer == null_rank) return;
    const CommunicatorSnapshot* const communicator = rank_.communicator(pending.communicator);
    WaitCondition condition;
    condition.function = pending.function;
    condition.receives = kind == CallKind::receive;
    condition.communicator = communicator ? communicator->uid : 0;
    if (pending.peer == any_rank && kind == CallKind::receive && communicator) {
      condition.kind = WaitKind::any;
      const auto& seen = job_.progress.members(*communicator);
      std::vector<std::int32_t> others;
      std::int32_t named = 0;  // of those that the call may name
      for (const auto& member : seen) {
        if (is_inter(*communicator) && member.record->side == communicator->side) continue;
        ++named;
        if (member.rank != &rank_) others.push_back(member.world_rank);
      }
      condition.ranks = std::move(others);
      condition.unseen = std::max(0, communicator->size - named);
      if (seen.empty()) wait_.resolved = false;
    } else if (const std::int32_t rank = communicator ? job_.members.world_rank(*communicator, pending.peer) : -1;
               rank >= 0) {
      condition.ranks = job_.single(rank);
      if (const RankSnapshot* const other = job_.members.find(rank);
          other && may_be_matched(*other, *communicator, pending, kind)) {
        condition.required = false;
        condition.matched = is_in_mpi(*other);
      } else if (kind == CallKind::send && !needs_receiver(pending)) {
        condition.required = false;
      } else if (other && (!pending.open || (kind == CallKind::receive && !has_one_thread(rank_)))) {
        // It may be complete, although the call waits for other messages. Or a message was sent but not received yet,
        // because another thread of the rank is in the MPI library, and both wait for a processor.
        condition.required =
            job_.numbers.is_surely_unmatched(rank_, {kind, pending.communicator, pending.tag, pending.number}, *other);
      }
    } else {
      wait_.resolved = false;
      return;
    }
    append(std::move(condition));
  }

  /// True if `peer` has posted an operation that may match `mine`.
  bool may_be_matched(const RankSnapshot& peer, const CommunicatorSnapshot& communicator, const Pending& mine,
                      CallKind kind) {
    if (communicator.uid == 0) return false;
    std::int64_t found = 0;
    const auto match = [&](const Message& other) {
      if (other.kind == kind || (other.peer != communicator.rank && other.peer != any_rank)) return;
      if (kind == CallKind::send ? !tags_match(mine.tag, other.tag) : !tags_match(other.tag, mine.tag)) return;
      const CommunicatorSnapshot* const its = peer.communicator(other.communicator);
      found += its && its->uid == communicator.uid;
    };
    // An operation that its rank has not completed yet, as one of the two of MPI_Sendrecv, may have been matched by an
    // earlier message.
    const NumberedMessage message{kind, mine.communicator, mine.tag, mine.number};
    each_current_message(peer, match);
    if (found > 0 && (&peer == &rank_ || !job_.numbers.is_later_than_calls(rank_, message, peer, found))) return true;
    found = 0;
    for (const RequestSnapshot& request : peer.requests) each_message(request, match);
    return found > 0 && (&peer == &rank_ || !job_.numbers.is_later(rank_, message, peer));
  }
  static bool is_in_mpi(const RankSnapshot& rank) {
    return rank.alive && std::any_of(rank.threads.begin(), rank.threads.end(),
                                     [](const ThreadSnapshot& t) { return t.in_mpi || t.polling; });
  }

  void add_finalize(std::uint16_t function) {
    WaitCondition condition;
    condition.function = function;
    condition.ranks = job_.progress.not_finalizing();
    condition.unseen = rank_.world_size - static_cast<std::int32_t>(job_.members.ranks().size());
    append(std::move(condition));
  }

  /// The ranks whose last calls show that they hold a lock of the same window at the same target. Which of them stand
  /// in the way is not known (shared locks do not exclude each other), but the library waits for one at least.
  void add_lock(const CallSnapshot& call) {
    const CommunicatorSnapshot* const window = rank_.communicator(call.communicator);
    std::vector<std::int32_t> holders;
    if (window && window->uid != 0)
      for (const auto& [number, other] : job_.members.ranks())
        if (other != &rank_ && holds_lock(*other, window->uid, call.peer)) holders.push_back(number);
    if (holders.empty()) {
      wait_.resolved = false;
      return;
    }
    WaitCondition condition;
    condition.kind = holders.size() == 1 ? WaitKind::all : WaitKind::any;
    condition.function = call.function;
    condition.communicator = window->uid;
    condition.ranks = std::move(holders);
    append(std::move(condition));
  }

  /// `target` no_rank: of any rank by MPI_Win_lock, because MPI_Win_lock_all does not exclude itself.
  static bool holds_lock(const RankSnapshot& rank, std::uint64_t window, std::int32_t target) {
    bool holds = false;
    std::vector<std::int32_t> locked;
    for (const ThreadSnapshot& thread : rank.threads)
      for (const CallSnapshot& call : thread.finished) {
        const CommunicatorSnapshot* const in = rank.communicator(call.communicator);
        if (!in || in->uid != window) continue;
        const std::string& function = function_name(call.function);
        if (target == no_rank) {
          if (function == "MPI_Win_lock") locked.push_back(call.peer);
          if (function == "MPI_Win_unlock") std::erase(locked, call.peer);
        } else if (function == "MPI_Win_lock_all" || function == "MPI_Win_unlock_all")
          holds = function == "MPI_Win_lock_all";
        else if (call.peer == target && (function == "MPI_Win_lock" || function == "MPI_Win_unlock"))
          holds = function == "MPI_Win_lock";
      }
    return holds || !locked.empty();
  }

  /// The ranks that have not made the calls that this rank's epochs need (EpochRecord). `window` no_index: of all.
  void add_epochs(std::uint16_t function, std::uint32_t window, bool access) {
    WaitCondition condition;
    condition.function = function;
    std::vector<std::int32_t> missing;
    for (const EpochSnapshot& epoch : rank_.epochs) {
      const CommunicatorSnapshot* const of = rank_.communicator(epoch.window);
      if (!of || (window != no_index && epoch.window != window)) continue;
      if (const std::optional<bool> behind = is_behind(epoch, *of, access); !behind) {
        wait_.resolved = false;
      } else if (*behind) {
        missing.push_back(epoch.rank);
        condition.communicator = of->uid;
      }
    }
    condition.ranks = std::move(missing);
    // It may wait for the data.
    if (condition.ranks.empty() || rank_.epochs_dropped > 0) wait_.resolved = false;
    if (!condition.ranks.empty()) append(std::move(condition));
  }
  /// Empty: not known.
  std::optional<bool> is_behind(const EpochSnapshot& mine, const CommunicatorSnapshot& window, bool access) const {
    const std::uint32_t begun = access ? mine.starts : mine.posts;
    if (begun == 0) return false;
    const RankSnapshot* const other = job_.members.find(mine.rank);
    if (!other || other->epochs_dropped > 0 || window.uid == 0) return std::nullopt;
    for (const CommunicatorSnapshot& its : other->communicators) {
      if (its.uid != window.uid) continue;
      const EpochSnapshot* const epoch = epoch_with(*other, its.index, rank_.world_rank);
      const std::uint32_t done = !epoch ? 0 : access ? epoch->posts : epoch->completes;
      return static_cast<std::int32_t>(begun - done) > 0;
    }
    return std::nullopt;
  }

  /// Some data need the target in the library, although it has nothing to call.
  void add_one_sided(const Pending& pending) {
    wait_.resolved = false;
    const CommunicatorSnapshot* const window = rank_.communicator(pending.communicator);
    const std::int32_t target = window ? job_.members.world_rank(*window, pending.peer) : -1;
    const RankSnapshot* const other = job_.members.find(target);
    if (!other || other == &rank_ || is_in_mpi(*other)) return;
    WaitCondition condition;
    condition.function = pending.function;
    condition.communicator = window->uid;
    condition.ranks = job_.single(target);
    condition.required = false;
    append(std::move(condition));
  }

  void add_collective(const Pending& pending, CallKind kind) {
    const CommunicatorSnapshot* const communicator = rank_.communicator(pending.communicator);
    if (!communicator || job_.progress.members(*communicator).empty()) {
      wait_.resolved = false;
      return;
    }
    const CollectiveProgress::Call& call = job_.progress.call(*communicator, pending.ordinal);
    WaitCondition needed, likely;
    needed.function = pending.function;
    needed.communicator = communicator->uid;
    needed.ordinal = pending.ordinal;
    needed.unseen = call.unseen;
    likely = needed;
    likely.required = false;
    if (needs_all(kind, *communicator, pending.peer)) {
      needed.ranks = call.missing;
    } else {
      // The missing members that MPI requires; if none of these is missing, the others.
      std::vector<std::int32_t> ranks;
      for (const Members::Member& member : call.missing_members)
        if (needs(kind, *communicator, pending.peer, member)) ranks.push_back(member.world_rank);
      needed.ranks = std::move(ranks);
      // Of the members that may be neighbors, one at least is.
      if (kind == CallKind::neighborhood && call.missing.size() == 1 && call.unseen == 0) needed.ranks = call.missing;
      if (needed.ranks.empty()) likely.ranks = call.missing;
    }
    if (call.missing.empty() && function_name(pending.function).starts_with("MPI_I"))
      likely.ranks = begun_elsewhere(*communicator, pending.ordinal);
    append(!needed.ranks.empty() || likely.ranks.empty() ? std::move(needed) : std::move(likely));
  }

  /// The members that have begun a nonblocking call and do something outside MPI: the library may not progress there.
  std::vector<std::int32_t> begun_elsewhere(const CommunicatorSnapshot& communicator, std::uint32_t ordinal) const {
    std::vector<std::int32_t> result;
    for (const Members::Member& member : job_.progress.members(communicator)) {
      if (!member.rank || member.rank == &rank_ || is_in_mpi(*member.rank)) continue;
      for (const RequestSnapshot& request : member.rank->requests) {
        const CommunicatorSnapshot* const in = member.rank->communicator(request.communicator);
        if (in && in->uid == communicator.uid && request.ordinal == ordinal) result.push_back(member.world_rank);
      }
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  static bool is_inter(const CommunicatorSnapshot& communicator) {
    return communicator.kind == CommunicatorKind::inter;
  }
  static bool needs_all(CallKind kind, const CommunicatorSnapshot& communicator, std::int32_t root) {
    if (is_inter(communicator)) return false;
    return kind == CallKind::to_root
               ? communicator.rank == root
               : kind != CallKind::from_root && kind != CallKind::from_lower && kind != CallKind::neighborhood;
  }

  /// True if MPI asks for the member's data before this rank can leave the call.
  static bool needs(CallKind kind, const CommunicatorSnapshot& communicator, std::int32_t root,
                    const Members::Member& other) {
    if (is_inter(communicator)) {  // the data come from the other group
      if (other.record->side == communicator.side) return false;
      return kind == CallKind::from_root ? other.member == root : kind != CallKind::to_root || root == root_rank;
    }
    switch (kind) {
      case CallKind::from_root: return other.member == root;
      case CallKind::from_lower: return other.member < communicator.rank;
      default: return needs_all(kind, communicator, root);
    }
  }

  JobFacts& job_;
  const RankSnapshot& rank_;
  ThreadWait wait_;
};

bool is_waiting(const ThreadSnapshot& thread) {
  return thread.polling || (thread.in_mpi && !thread.moving &&
                            (!thread.current || may_block(thread.current->function, thread.current->ordinal != 0)));
}

/// The rank that holds the lock for which `rank` waits outside MPI; null if there is none.
const RankSnapshot* lock_holder(const JobFacts& facts, const RankSnapshot& rank) {
  if (rank.wait.holder == 0 || !main_thread(rank)) return nullptr;
  for (const auto& [number, other] : facts.members.ranks())
    if (other->alive && other->pid == rank.wait.holder && other->host == rank.host &&
        other->pid_namespace == rank.pid_namespace && other != &rank)
      return other;
  return nullptr;
}

ThreadWait lock_wait(const JobFacts& facts, const RankSnapshot& rank, const RankSnapshot& holder) {
  WaitCondition condition;
  condition.holds_lock = true;
  condition.ranks = facts.single(holder.world_rank);
  ThreadWait wait;
  wait.slot = main_thread(rank)->slot;
  wait.may_end = rank.wait.holder_may_release;
  wait.conditions.push_back(std::move(condition));
  return wait;
}

RankWaits waits_of(JobFacts& facts, const RankSnapshot& rank, bool job_ended) {
  RankWaits result;
  result.rank = rank.world_rank;
  result.gone = rank.gone() && !job_ended;
  if (!rank.alive && !job_ended) return result;
  result.every_thread_waits = true;
  const RankSnapshot* const holder = lock_holder(facts, rank);
  if (holder) result.threads.push_back(lock_wait(facts, rank, *holder));
  for (const ThreadSnapshot& thread : rank.threads) {
    if (holder && &thread == main_thread(rank)) continue;
    if (is_waiting(thread)) {
      if (thread.current) result.seconds = std::max(result.seconds, rank.seconds_since(thread.current->entered));
      result.threads.push_back(ThreadConditions(facts, rank, thread).take());
    } else if (!is_idle_slot(rank, thread)) {
      result.every_thread_waits = false;
    }
  }
  if (result.threads.empty()) result.every_thread_waits = false;
  return result;
}

}  // namespace

const RankWaits* WaitGraph::find(std::int32_t rank) const noexcept {
  // Mostly all ranks are there.
  if (rank >= 0 && static_cast<std::size_t>(rank) < ranks.size() && ranks[static_cast<std::size_t>(rank)].rank == rank)
    return &ranks[static_cast<std::size_t>(rank)];
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const RankWaits& r, std::int32_t number) { return r.rank < number; });
  return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

static int strength(const WaitCondition& condition) {
  return 2 * condition.required + (condition.kind == WaitKind::all);
}

const WaitCondition* WaitGraph::edge(std::int32_t waiter, std::int32_t target) const noexcept {
  const RankWaits* const waits = find(waiter);
  const WaitCondition* found = nullptr;
  if (!waits) return found;
  for (const ThreadWait& thread : waits->threads)
    for (const WaitCondition& condition : thread.conditions)
      if (!condition.matched && condition.names(target) && (!found || strength(*found) <= strength(condition)))
        found = &condition;
  return found;
}

bool WaitGraph::needs(std::int32_t waiter, std::int32_t target) const noexcept {
  const RankWaits* const waits = find(waiter);
  bool found = false;
  if (!waits) return false;
  each_needed(*waits, [&](const RankSet& ranks) { found = found || ranks.contains(target); });
  return found || std::any_of(waits->threads.begin(), waits->threads.end(),
                              [&](const ThreadWait& thread) { return thread.only_peer == target; });
}

WaitGraph find_waits(std::span<const RankSnapshot> job) {
  const Members members(job);
  WaitGraph graph;
  const bool job_ended = std::none_of(job.begin(), job.end(), [](const RankSnapshot& rank) { return rank.alive; });
  JobFacts facts(members);
  for (const auto& [number, rank] : members.ranks()) {
    graph.ranks.push_back(waits_of(facts, *rank, job_ended));
    graph.ranks.back().snapshot = static_cast<std::size_t>(rank - job.data());
  }
  graph.mismatches = find_mismatches(members);
  if (graph.mismatches.empty()) graph.mismatches = find_different_amounts(members, facts.progress, false);
  return graph;
}

}  // namespace bestride::inline telemetry
