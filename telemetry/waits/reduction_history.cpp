// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/reduction_history.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace bestride::inline telemetry {
namespace {

/// Calls visit(rank, its snapshot, record) for the communicators that are compared.
template <class Visit>
void each_communicator(const Members& members, Visit visit) {
  for (const auto& [number, rank] : members.ranks())
    for (const CommunicatorSnapshot& record : rank->communicators)
      if (record.uid != 0 && record.kind == CommunicatorKind::intra && record.size > 1 && record.collectives > 0)
        visit(number, *rank, record);
}

/// Of one communicator, after one number of calls.
struct Seen {
  std::uint32_t hash = 0;
  std::int32_t ranks = 0, size = 0;  ///< that were seen; of the communicator
  bool differs = false;
};

}  // namespace

ReductionHistory::Communicator& ReductionHistory::add(const CommunicatorSnapshot& record) {
  Communicator& known = communicators_[record.uid];
  known.size = record.size;
  known.name = record.name;
  return known;
}

ReductionHistory::States ReductionHistory::differing(const Members& members) {
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, Seen>> seen;  // by uid, then number of calls
  const auto compare = [&](std::uint64_t uid, const State& state, std::int32_t size) {
    Seen& moment = seen[uid].try_emplace(state.calls, Seen{state.hash}).first->second;
    ++moment.ranks;
    moment.size = size;
    moment.differs = moment.differs || moment.hash != state.hash;
  };
  each_communicator(members, [&](std::int32_t number, const RankSnapshot& rank, const CommunicatorSnapshot& record) {
    const State state{record.collectives, record.reductions};
    if (rank.state == ProcessState::finalized)
      add(record).ended[number] = state;
    else
      compare(record.uid, state, record.size);
  });
  for (const auto& [uid, known] : communicators_)
    for (const auto& [number, state] : known.ended) compare(uid, state, known.size);
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
  each_communicator(members, [&](std::int32_t number, const RankSnapshot&, const CommunicatorSnapshot& record) {
    if (const auto at = result.find(record.uid); at != result.end()) {
      at->second[number] = {record.collectives, record.reductions};
      add(record);
    }
  });
  for (auto& [uid, states] : result) states.insert(communicators_[uid].ended.begin(), communicators_[uid].ended.end());
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
      CollectiveMismatch mismatch{uid, known.name, calls, {}, known.agreed + 1};
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
