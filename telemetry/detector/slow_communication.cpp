// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/slow_communication.hpp"

#include <algorithm>
#include <set>

#include "telemetry/detector/message_delays.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr double shortest_window = 5, longest_window = 30;  ///< seconds
constexpr double enough_per_pair = 8;                       ///< messages, of pairs that have any
constexpr double queued_share = 0.02;                       ///< of the window
constexpr double scheduling = 0.05;                         ///< seconds
constexpr int forgetting_windows = 2;
// A path that is slow by `clear_factor` is reported after `clear_windows`, or `shared_windows` if calls completed
// several of its messages; between hosts also one that is slow by `least_factor` in each of `close_windows` and by
// `mean_factor` on average. Measured by simulation of 100 s (slow_communication_test.cpp, 200 seeds): no path is
// reported in 6000 clean jobs; with 2 windows for all, one was reported in 2 of 1200. A host that is slow by a fifth is
// found in 400 of 400 within 60 s.
constexpr double clear_factor = 1.5, least_factor = 1.07, mean_factor = 1.1;
constexpr int clear_windows = 2, shared_windows = 4, close_windows = 6;

}  // namespace

void SlowCommunication::begin_window(double seconds, std::span<const RankSnapshot> ranks) {
  open_ = true;
  begin_ = seconds;
  next_ = seconds + shortest_window;
  begin_ticks_.clear();
  begin_queued_.clear();
  for (const RankSnapshot& rank : ranks)
    if (rank.world_rank >= 0) {
      begin_ticks_[rank.world_rank] = rank.read_at;
      begin_queued_[rank.world_rank] = rank.visible ? rank.use.queued_seconds : -1;
    }
}

bool SlowCommunication::was_queued(const RankSnapshot& rank, double seconds) const {
  const auto before = begin_queued_.find(rank.world_rank);
  return before == begin_queued_.end() || before->second < 0 || rank.use.queued_seconds < 0 ||
         rank.use.queued_seconds - before->second > queued_share * seconds;
}

void SlowCommunication::note(const std::vector<SlowNodePath>& paths, bool hosts) {
  for (const SlowNodePath& path : paths) {
    const auto at = std::find_if(known_.begin(), known_.end(),
                                 [&](const Known& known) { return known.hosts == hosts && known.path.same_as(path); });
    if (at == known_.end()) {
      known_.push_back({path, hosts, begin_, 1, path.factor >= clear_factor, path.factor, 0});
      continue;
    }
    // If different directions seem slow in different windows, both may be slow.
    const PathKind kind = at->path.kind == path.kind ? path.kind
                          : is_link(path.kind)       ? PathKind::two_way_link
                                                     : PathKind::node;
    at->path = path;
    at->path.kind = kind;
    ++at->windows;
    at->clear += path.factor >= clear_factor;
    at->factors += path.factor;
    at->missed = -1;
  }
}

bool SlowCommunication::is_confirmed(const Known& known) {
  return known.clear >= (known.path.own_calls ? clear_windows : shared_windows) ||
         (known.windows >= close_windows && known.factors >= mean_factor * known.windows);
}

bool SlowCommunication::end_window(double seconds, std::span<const RankSnapshot> ranks, bool last) {
  std::map<std::string, std::uint32_t> numbers;
  std::map<std::int32_t, std::uint32_t> host_of;
  for (const std::string& host : hosts_) numbers.emplace(host, numbers.size());
  std::set<std::uint32_t> crowded;
  std::int32_t most = 0;
  for (const RankSnapshot& rank : ranks) {
    if (rank.world_rank < 0) continue;
    const auto [at, is_new] = numbers.try_emplace(rank.host, numbers.size());
    if (is_new) hosts_.push_back(rank.host);
    host_of[rank.world_rank] = at->second;
    if (was_queued(rank, seconds - begin_)) crowded.insert(at->second);
    most = std::max(most, rank.world_rank);
  }
  std::vector<MessageDelay> between, within;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (MessageDelay& each : message_delays(ranks, begin_ticks_)) {
    if (crowded.contains(host_of[each.from]) || crowded.contains(host_of[each.to]))
      each.seconds = std::max(each.seconds, scheduling);
    const bool here = host_of[each.from] == host_of[each.to];
    (here ? within : between).push_back(each);
    pairs.insert(here ? std::pair(each.from, each.to)
                      : std::pair(-1 - static_cast<std::int32_t>(host_of[each.from]),
                                  -1 - static_cast<std::int32_t>(host_of[each.to])));
  }
  const auto messages = static_cast<double>(between.size() + within.size());
  if (!last && messages < enough_per_pair * static_cast<double>(std::max<std::size_t>(pairs.size(), 1))) return false;
  // note() sets -1 for what is slow in this window, too.
  for (Known& known : known_) ++known.missed;
  const auto hosts = static_cast<std::uint32_t>(hosts_.size());
  const auto count = static_cast<std::uint32_t>(most) + 1;
  const auto add = [&](const std::vector<MessageDelay>& delays, bool by_host) {
    const std::vector<PairDelay> matrix = pair_delays(
        delays, [&](std::int32_t rank) { return by_host ? host_of[rank] : static_cast<std::uint32_t>(rank); });
    const std::uint32_t nodes = by_host ? hosts : count;
    std::vector<SlowNodePath> paths = find_slow_paths(matrix, nodes, clear_factor);
    if (by_host && paths.empty()) {
      std::vector<PairDelay> exact;
      std::copy_if(matrix.begin(), matrix.end(), std::back_inserter(exact),
                   [](const PairDelay& pair) { return pair.exact; });
      paths = find_slow_paths(exact, nodes, least_factor);
    }
    note(paths, by_host);
  };
  add(between, true);
  add(within, false);
  for (Known& known : known_) known.missed = std::max(known.missed, 0);
  std::erase_if(known_,
                [](const Known& known) { return known.missed >= (is_confirmed(known) ? forgetting_windows : 1); });
  return true;
}

SlowPathFinding SlowCommunication::describe(const Known& known, std::span<const RankSnapshot> ranks) const {
  SlowPathFinding result;
  const SlowNodePath& from = known.path;
  result.path = {from.kind,   known.hosts,   {},         {},           -1,           -1,
                 from.factor, from.messages, from.bytes, from.seconds, from.typical, from.exact};
  SlowPath& path = result.path;
  if (known.hosts) {
    path.host = hosts_[from.node];
    path.other_host = hosts_[from.other];
  } else {
    path.rank = static_cast<std::int32_t>(from.node);
    path.other_rank = static_cast<std::int32_t>(from.other);
  }
  for (const RankSnapshot& rank : ranks)
    if (rank.world_rank >= 0 && (known.hosts ? rank.host == path.host || rank.host == path.other_host
                                             : rank.world_rank == path.rank || rank.world_rank == path.other_rank))
      result.ranks.push_back(rank.world_rank);
  std::sort(result.ranks.begin(), result.ranks.end());
  result.ranks.erase(std::unique(result.ranks.begin(), result.ranks.end()), result.ranks.end());
  result.since = known.since;
  result.confidence = !from.exact ? 0.6 : from.factor >= 2 ? 0.9 : from.factor >= clear_factor ? 0.8 : 0.6;
  return result;
}

std::vector<SlowPathFinding> SlowCommunication::observe(double seconds, std::span<const RankSnapshot> ranks,
                                                        bool interrupted) {
  if (interrupted)
    open_ = false;
  else if (!open_)
    begin_window(seconds, ranks);
  else if (seconds >= next_) {
    if (end_window(seconds, ranks, seconds - begin_ >= longest_window))
      begin_window(seconds, ranks);
    else
      next_ = seconds + shortest_window;
  }
  std::vector<SlowPathFinding> result;
  for (const Known& known : known_)
    if (is_confirmed(known)) result.push_back(describe(known, ranks));
  return result;
}

}  // namespace bestride::inline telemetry
