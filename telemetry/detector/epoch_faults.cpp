// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/epoch_faults.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {
namespace {

using Ranks = std::vector<std::int32_t>;

/// What a rank does with a window.
struct WindowUse {
  std::uint32_t index = no_index;       ///< of the window; no_index: it has none
  CallKind waits_in = CallKind::local;  ///< access or exposure, if it is in such a call on the window
  bool access_open = false, exposure_open = false;
  bool starts_known = true;             ///< they may not be recorded
  std::uint32_t starts = 0, posts = 0;  ///< with the rank with which there were most
};

/// Times at which a call began or ended the epochs of a kind, of which the last one counts.
class Epochs {
 public:
  void see(bool begins, std::uint64_t at) {
    if (at >= last_) last_ = at, open_ = begins;
  }
  bool open() const { return open_; }

 private:
  std::uint64_t last_ = 0;
  bool open_ = false;
};

WindowUse use_of(const RankSnapshot& rank, std::uint64_t uid) {
  WindowUse use;
  for (const CommunicatorSnapshot& its : rank.communicators)
    if (its.uid == uid && !its.freed) use.index = its.index;
  if (use.index == no_index) return use;
  for (const EpochSnapshot& epoch : rank.epochs)
    if (epoch.window == use.index) {
      use.starts = std::max(use.starts, epoch.starts);
      use.posts = std::max(use.posts, epoch.posts);
    }
  Epochs access, exposure;
  bool has_started = false;
  const auto see = [&](const CallSnapshot& call, bool in_it) {
    if (call.communicator != use.index) return;
    const std::string& name = function_name(call.function);
    if (name == "MPI_Win_start" || name == "MPI_Win_complete") {
      has_started = true;
      access.see(name == "MPI_Win_start" || in_it, call.entered);
    } else if (name == "MPI_Win_post" || name == "MPI_Win_wait" || name == "MPI_Win_test") {
      exposure.see(name == "MPI_Win_post" || in_it, call.entered);
    }
    const CallKind kind = kind_of(call.function, false);
    if (in_it && (kind == CallKind::access || kind == CallKind::exposure)) use.waits_in = kind;
  };
  for (const ThreadSnapshot& thread : rank.threads) {
    for (const CallSnapshot& call : thread.finished) see(call, false);
    if (thread.current) see(*thread.current, true);
    if (thread.polling && kind_of(thread.poll_function, false) == CallKind::exposure) use.waits_in = CallKind::exposure;
  }
  use.access_open = access.open();
  use.exposure_open = exposure.open() || use.waits_in == CallKind::exposure;
  use.starts_known = !has_started || use.starts > 0;
  return use;
}

std::uint16_t function_in(const RankSnapshot& rank) {
  for (const ThreadSnapshot& thread : rank.threads)
    if (thread.current || thread.polling) return thread.current ? thread.current->function : thread.poll_function;
  return no_function;
}

bool is_less(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

/// `mine`: the epochs of a rank with `other`, on the window of this uid.
void compare(const RankSnapshot& rank, const EpochSnapshot& mine, const RankSnapshot& other, std::uint64_t uid,
             std::vector<EpochFault>& found) {
  const WindowUse uses = use_of(rank, uid), others = use_of(other, uid);
  if (uses.index == no_index || others.index == no_index) return;
  const EpochSnapshot* const known = epoch_with(other, others.index, rank.world_rank);
  const EpochSnapshot theirs = known ? *known : EpochSnapshot{};
  const auto add = [&](const char* missing, CallKind kind, bool group, Ranks blamed) {
    EpochFault fault;
    fault.mismatch = {rank.world_rank, other.world_rank, function_in(rank), missing, uid, group};
    fault.blamed = std::move(blamed);
    fault.waits = uses.waits_in == kind;
    found.push_back(std::move(fault));
  };
  // Each counts the epochs with its most frequent partner, which are as many as its rounds.
  const auto add_begin = [&](const char* missing, CallKind kind, std::uint32_t done, std::uint32_t rounds,
                             std::uint32_t other_rounds) {
    if (is_less(other_rounds, rounds)) {
      // If it is in a call of an earlier epoch, it is not this call that it has left out.
      if (others.waits_in == CallKind::local) add(missing, kind, false, {other.world_rank});
      return;
    }
    if (done == 0 && rounds >= 2) return add(missing, kind, true, {rank.world_rank});
    if (done >= 2 || (done == 1 && rounds == 2)) return add(missing, kind, true, {other.world_rank});
    add(missing, kind, true,
        {std::min(rank.world_rank, other.world_rank), std::max(rank.world_rank, other.world_rank)});
  };
  if (is_less(theirs.posts, mine.starts) && (others.exposure_open || others.waits_in != CallKind::access))
    add_begin("MPI_Win_post", CallKind::access, theirs.posts, uses.starts, others.posts);
  if (!others.starts_known) return;
  if (is_less(theirs.starts, mine.posts)) {
    if (others.access_open || others.waits_in != CallKind::exposure)
      add_begin("MPI_Win_start", CallKind::exposure, theirs.starts, uses.posts, others.starts);
  } else if (is_less(theirs.completes, mine.posts) && uses.waits_in == CallKind::exposure &&
             others.waits_in == CallKind::local) {
    add("MPI_Win_complete", CallKind::exposure, false, {other.world_rank});
  }
}

}  // namespace

std::vector<EpochFault> find_epoch_faults(const std::vector<const RankSnapshot*>& ranks) {
  std::vector<EpochFault> found;
  std::map<std::int32_t, const RankSnapshot*> by_rank;
  for (const RankSnapshot* const rank : ranks) by_rank[rank->world_rank] = rank;
  for (const auto& [number, rank] : by_rank)
    for (const EpochSnapshot& epoch : rank->epochs) {
      const CommunicatorSnapshot* const window = rank->communicator(epoch.window);
      const auto other = by_rank.find(epoch.rank);
      if (!window || window->uid == 0 || window->freed || other == by_rank.end() || epoch.rank == number) continue;
      if (rank->epochs_dropped == 0 && other->second->epochs_dropped == 0)
        compare(*rank, epoch, *other->second, window->uid, found);
    }
  // The one that a rank waits in says most.
  std::stable_partition(found.begin(), found.end(), [](const EpochFault& fault) { return fault.waits; });
  return found;
}

std::vector<std::int32_t> blamed_for(const std::vector<EpochFault>& faults) {
  std::map<std::int32_t, std::size_t> times;
  Ranks in_all, blamed;
  for (const EpochFault& fault : faults) {
    ++times[fault.mismatch.waiter], ++times[fault.mismatch.other];
    blamed.insert(blamed.end(), fault.blamed.begin(), fault.blamed.end());
  }
  for (const auto& [rank, count] : times)
    if (count == faults.size()) in_all.push_back(rank);
  if (faults.size() > 1 && in_all.size() == 1) return in_all;
  std::sort(blamed.begin(), blamed.end());
  blamed.erase(std::unique(blamed.begin(), blamed.end()), blamed.end());
  return blamed;
}

}  // namespace bestride::inline telemetry
