// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/members.hpp"

#include <algorithm>

namespace bestride::inline telemetry {
namespace {

/// Rank in the communicator of a world rank, or -1.
std::int32_t evenly_spaced_member(const CommunicatorSnapshot& c, std::int32_t world_rank) {
  const std::int64_t distance = std::int64_t{world_rank} - c.first_member;
  if (c.stride == 0) return distance == 0 ? 0 : -1;
  if (distance % c.stride != 0) return -1;
  const std::int64_t member = distance / c.stride;
  return member >= 0 && member < c.size ? static_cast<std::int32_t>(member) : -1;
}

}  // namespace

bool is_evenly_spaced(const CommunicatorSnapshot& c) { return c.first_member >= 0 && (c.stride != 0 || c.size == 1); }

std::int32_t world_rank_of(const CommunicatorSnapshot& communicator, std::int32_t member) {
  if (!is_evenly_spaced(communicator) || member < 0 || member >= communicator.size) return -1;
  const std::int64_t rank = communicator.first_member + std::int64_t{member} * communicator.stride;
  return rank >= 0 && rank <= INT32_MAX ? static_cast<std::int32_t>(rank) : -1;
}

Members::Members(std::span<const RankSnapshot> job) : job_(job) {
  for (const RankSnapshot& rank : job)
    if (rank.world_rank >= 0) ranks_.emplace_back(rank.world_rank, &rank);
  const auto is_before = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto not_after = [](const auto& a, const auto& b) { return a.first >= b.first; };
  if (std::adjacent_find(ranks_.begin(), ranks_.end(), not_after) != ranks_.end()) {
    // Of several snapshots of one rank the first that is alive, else the first.
    std::stable_partition(ranks_.begin(), ranks_.end(), [](const auto& entry) { return entry.second->alive; });
    std::stable_sort(ranks_.begin(), ranks_.end(), is_before);
    ranks_.erase(
        std::unique(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
        ranks_.end());
  }
  for (const auto& [number, rank] : ranks_)
    for (const CommunicatorSnapshot& record : rank->communicators) {
      if (record.uid == 0) continue;
      by_uid_[record.uid].push_back({rank, &record});
      if (!is_evenly_spaced(record) || record.kind == CommunicatorKind::inter)
        scattered_[group_key(record, record.side)].emplace_back(record.rank, number);
    }
  for (auto& [uid, members] : scattered_) std::sort(members.begin(), members.end());
}

std::size_t Members::position(std::int32_t world_rank) const noexcept {
  // Mostly all ranks are there.
  const auto direct = static_cast<std::size_t>(world_rank);
  if (world_rank >= 0 && direct < ranks_.size() && ranks_[direct].first == world_rank) return direct;
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), world_rank,
                                   [](const auto& entry, std::int32_t number) { return entry.first < number; });
  return at != ranks_.end() && at->first == world_rank ? static_cast<std::size_t>(at - ranks_.begin()) : none;
}

const RankSnapshot* Members::find(std::int32_t world_rank) const noexcept {
  const std::size_t at = position(world_rank);
  return at != none ? ranks_[at].second : nullptr;
}

std::int32_t Members::world_rank(const CommunicatorSnapshot& communicator, std::int32_t member) const {
  if (member < 0 || member >= communicator.size) return -1;
  if (is_evenly_spaced(communicator)) return world_rank_of(communicator, member);
  const auto known = scattered_.find(group_key(communicator, 1 - communicator.side));
  if (known == scattered_.end()) return -1;
  const auto at = std::lower_bound(known->second.begin(), known->second.end(), std::pair(member, INT32_MIN));
  return at != known->second.end() && at->first == member ? at->second : -1;
}

std::vector<Members::Member> Members::seen(const CommunicatorSnapshot& communicator) const {
  std::vector<Member> result;
  const auto known = by_uid_.find(communicator.uid);
  if (communicator.uid == 0 || known == by_uid_.end()) return result;
  for (const Own& own : known->second) result.push_back({own.record->rank, own.rank->world_rank, own.rank, own.record});
  if (!is_evenly_spaced(communicator) || communicator.kind == CommunicatorKind::inter) return result;
  // Members that have no record of the communicator, but are known by its description. `result` is ascending.
  const std::size_t with_record = result.size();
  for (const auto& [number, rank] : ranks_) {
    const std::int32_t member = evenly_spaced_member(communicator, number);
    if (member < 0) continue;
    const auto at = std::lower_bound(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(with_record), number,
                                     [](const Member& m, std::int32_t rank) { return m.world_rank < rank; });
    if (at == result.begin() + static_cast<std::ptrdiff_t>(with_record) || at->world_rank != number)
      result.push_back({member, number, rank, nullptr});
  }
  return result;
}

}  // namespace bestride::inline telemetry
