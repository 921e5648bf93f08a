// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/rank_updates.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "telemetry/record/snapshot_code.hpp"

namespace bestride::inline cli {
namespace {

class Update {
 public:
  explicit Update(std::vector<RankSnapshot> before) : before_(std::move(before)) {
    for (RankSnapshot& rank : before_) known_.emplace(rank, &rank);
  }

  void add_local(RankSnapshot&& rank) {
    if (rank.alive && !rank.visible) {
      elsewhere_.push_back(std::move(rank));
      return;
    }
    if (!rank.alive) ended_.emplace(rank);
    add(std::move(rank));
  }

  void add_remote(RankSnapshot&& rank) {
    if (ended_.contains(ProcessKey(rank))) return;
    remote_.emplace(rank);
    add(std::move(rank));
  }

  void add(RankSnapshot&& rank) {
    const auto at = known_.find(ProcessKey(rank));
    RankSnapshot* const same = at != known_.end() ? at->second : nullptr;
    const Activity activity = activity_between(same, rank);
    if (rank.partial) complete(rank, same);
    add(std::move(rank), activity);
    if (same) known_.erase(at);
  }

  /// Keeps the ranks on these hosts that were not added. The numbers become their RankSnapshot::unheard.
  void keep(const std::unordered_map<std::string, double>& hosts) {
    for (RankSnapshot& rank : before_) {
      if (!rank.remote) continue;
      const auto host = hosts.find(rank.host);
      if (host == hosts.end() || !known_.contains(ProcessKey(rank))) continue;
      if (ended_.contains(ProcessKey(rank))) continue;
      rank.unheard = host->second;
      remote_.emplace(rank);
      add(std::move(rank), Activity::none);
    }
  }

  /// Adds those processes of other pid namespaces that no agent there knows.
  void add_elsewhere() {
    for (RankSnapshot& rank : elsewhere_)
      if (!remote_.contains(ProcessKey(rank))) add(std::move(rank));
  }

  UpdatedRanks sorted() && {
    std::vector<std::size_t> order(ranks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const RankSnapshot &x = ranks_[a], &y = ranks_[b];
      return std::tie(x.world_rank, x.host, x.pid) < std::tie(y.world_rank, y.host, y.pid);
    });
    UpdatedRanks result;
    result.ranks.reserve(order.size());
    for (const std::size_t i : order) {
      result.ranks.push_back(std::move(ranks_[i]));
      result.activities.push_back(activities_[i]);
    }
    return result;
  }

 private:
  void add(RankSnapshot&& rank, Activity activity) {
    ranks_.push_back(std::move(rank));
    activities_.push_back(activity);
  }

  using Keys = std::unordered_set<ProcessKey, ProcessKeyHash>;

  std::vector<RankSnapshot> before_, ranks_;
  std::vector<RankSnapshot> elsewhere_;  ///< of this host, in other pid namespaces: an agent there knows more
  Keys ended_, remote_;                  ///< on this host; known from agents
  std::vector<Activity> activities_;     ///< of ranks_
  std::unordered_map<ProcessKey, RankSnapshot*, ProcessKeyHash> known_;  ///< those of before_ that were not added
};

}  // namespace

UpdatedRanks update_ranks(std::vector<RankSnapshot> before, std::vector<RankSnapshot> local,
                          std::vector<HostUpdate> hosts) {
  Update update(std::move(before));
  for (RankSnapshot& rank : local) update.add_local(std::move(rank));
  std::unordered_map<std::string, double> silent;
  for (HostUpdate& host : hosts) {
    if (!host.ranks) {
      silent.emplace(host.host, host.unheard);
      continue;
    }
    for (RankSnapshot& rank : *host.ranks) {
      rank.unheard = host.unheard;
      update.add_remote(std::move(rank));
    }
  }
  update.keep(silent);
  update.add_elsewhere();
  return std::move(update).sorted();
}

}  // namespace bestride::inline cli
