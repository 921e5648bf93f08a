// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/reduction_history.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace bestride::inline telemetry {
namespace {

/// Calls visit(rank, record) for the communicators that are compared.
template <class Visit>
void each_communicator(const Members& members, Visit visit) {
  for (const auto& [number, rank] : members.ranks())
    for (const CommunicatorSnapshot& record : rank->communicators)
      if (record.uid != 0 && record.kind == CommunicatorKind::intra && record.size > 1 && record.collectives > 0)
        visit(number, record);
}

/// Of one communicator, after one number of calls.
struct Seen {
  std::uint32_t hash = 0;
  std::int32_t ranks = 0, size = 0;  ///< that were seen; of the communicator
  bool differs = false;
};

}  // namespace

ReductionHistory::States ReductionHistory::differing(const Members& members) {
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, Seen>> seen;  // by uid, then number of calls
  each_communicator(members, [&](std::int32_t, const CommunicatorSnapshot& record) {
    Seen& moment = seen[record.uid].try_emplace(record.collectives, Seen{record.reductions}).first->second;
    ++moment.ranks;
    moment.size = record.size;
    moment.differs = moment.differs || moment.hash != record.reductions;
  });
  States result;
  for (const auto& [uid, moments] : seen)
    for (const auto& [calls, moment] : moments) {
      if (moment.differs)
        result[uid];
      else if (moment.ranks == moment.size)
        communicators_[uid].agreed = calls;
    }
  // Of communicators that were freed.
  std::erase_if(communicators_, [&](const auto& entry) { return !seen.count(entry.first); });
  if (result.empty()) return result;
  each_communicator(members, [&](std::int32_t number, const CommunicatorSnapshot& record) {
    const auto at = result.find(record.uid);
    if (at == result.end()) return;
    at->second[number] = {record.collectives, record.reductions};
    communicators_[record.uid].size = record.size;
    communicators_[record.uid].name = record.name;
  });
  return result;
}

std::vector<CollectiveMismatch> ReductionHistory::observe(const Members& members) {
  std::vector<CollectiveMismatch> result;
  for (const auto& [uid, states] : differing(members)) {
    Communicator& known = communicators_[uid];
    if (!std::exchange(known.differed, true) || known.reported) continue;
    std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::int32_t>>> ranks;  // by number of calls and hash
    for (const auto& [number, state] : states) ranks[state.calls][state.hash].push_back(number);
    for (auto& [calls, groups] : ranks) {
      CollectiveMismatch mismatch;
      mismatch.communicator = uid;
      mismatch.name = known.name;
      mismatch.ordinal = calls;
      mismatch.first = known.agreed + 1;
      std::size_t compared = 0;
      for (auto& [hash, group] : groups) {
        compared += group.size();
        mismatch.variants.push_back({no_function, no_rank, 0, 0, std::move(group)});
      }
      sort_variants(mismatch.variants);
      const auto size = static_cast<std::size_t>(known.size);
      if (groups.size() < 2 || (compared < size && 2 * mismatch.variants[0].ranks.size() <= size)) continue;
      known.reported = true;
      result.push_back(std::move(mismatch));
      break;
    }
  }
  return result;
}

}  // namespace bestride::inline telemetry
