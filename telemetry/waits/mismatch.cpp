// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/mismatch.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace bestride::inline telemetry {
namespace {

/// The communicator of a call, if its calls can be compared with those of other ranks; else null.
const CommunicatorSnapshot* comparable(const RankSnapshot& rank, std::uint32_t communicator, std::uint32_t ordinal,
                                       std::uint16_t function) {
  if (ordinal == 0 || function == no_function) return nullptr;
  const CommunicatorSnapshot* const known = rank.communicator(communicator);
  return known && known->uid != 0 ? known : nullptr;
}

/// Calls visit(rank, communicator, ordinal, call) for the collective calls of all ranks.
template <class Visit>
void each_call(const Members& members, bool finished, Visit visit) {
  for (const auto& [number, rank] : members.ranks()) {
    const auto pass_on = [&, rank = rank](std::uint32_t index, std::uint32_t ordinal, std::uint16_t function,
                                          std::int32_t root, std::uint64_t bytes, std::uint16_t operation) {
      if (const CommunicatorSnapshot* const communicator = comparable(*rank, index, ordinal, function))
        visit(*rank, *communicator, ordinal, CollectiveCall::of(function, root, bytes, operation));
    };
    for (const ThreadSnapshot& thread : rank->threads) {
      if (finished)
        for (const CallSnapshot& call : thread.finished)
          pass_on(call.communicator, call.ordinal, call.function, call.peer, call.bytes, call.operation);
      if (const auto& call = thread.current)
        pass_on(call->communicator, call->ordinal, call->function, call->peer, call->bytes, call->operation);
    }
    for (const RequestSnapshot& request : rank->requests)
      pass_on(request.communicator, request.ordinal, request.function, request.peer, request.bytes, 0);
  }
}

/// Both groups of an intercommunicator pass the same amount, except members that neither send nor receive.
bool has_equal_amounts(const CollectiveCall& call) {
  static constexpr std::string_view names[] = {"MPI_Allreduce", "MPI_Iallreduce", "MPI_Bcast",
                                               "MPI_Ibcast",    "MPI_Reduce",     "MPI_Ireduce"};
  return call.root != null_rank &&
         std::find(std::begin(names), std::end(names), function_name(call.function)) != std::end(names);
}

/// A member's call agrees with this root of an intercommunicator's call.
bool agrees(const ComparedCalls::Call& call, std::uint32_t side, std::int32_t member) {
  const std::int32_t root = call.call.root;
  if (call.side != side) return root == member;
  return root == (call.member == member ? root_rank : null_rank);
}

}  // namespace

void ComparedCalls::add(const RankSnapshot& rank, const CommunicatorSnapshot& communicator,
                        const CollectiveCall& call) {
  name_ = communicator.name;
  inter_ = communicator.kind == CommunicatorKind::inter;
  members_ = std::max(members_, static_cast<std::size_t>(member_count(communicator)));
  CollectiveCall compared = call;
  if (inter_) {
    // Members may pass different roots, and their groups different amounts.
    if (!has_equal_amounts(call)) compared.bytes = 0;
    std::erase_if(calls_, [&](const Call& each) { return each.rank == rank.world_rank; });
    calls_.push_back({rank.world_rank, communicator.rank, communicator.side, compared});
    sizes_[communicator.side] = communicator.local_size;
    sizes_[1 - communicator.side] = communicator.size;
    compared.root = no_rank;
  }
  add_to_variants(variants_, compared, rank.world_rank);
}

std::size_t ComparedCalls::made() const noexcept {
  std::size_t made = 0;
  for (const auto& variant : variants_) made += variant.ranks.size();
  return made;
}

std::optional<CollectiveMismatch> ComparedCalls::mismatch(const CollectiveInstance& instance) && {
  std::vector<std::int32_t> culprits;
  if (variants_.size() == 1 && inter_ && calls_[0].call.root != no_rank && !find_root(culprits)) {
    variants_.clear();
    for (const Call& each : calls_) {
      const auto same = std::find_if(variants_.begin(), variants_.end(),
                                     [&](const auto& variant) { return variant.root == each.call.root; });
      auto& variant =
          same != variants_.end()
              ? *same
              : variants_.emplace_back(CollectiveMismatch::Variant{each.call.function, each.call.root, 0, 0, {}});
      variant.ranks.insert(std::lower_bound(variant.ranks.begin(), variant.ranks.end(), each.rank), each.rank);
    }
  } else if (variants_.size() < 2) {
    return std::nullopt;
  }
  sort_variants(variants_);
  CollectiveMismatch result{instance.communicator, name_, instance.ordinal, std::move(variants_), 0, {}, {}};
  result.culprits = std::move(culprits);
  return result;
}

/// True if one root fits the calls of all members of an intercommunicator that have made theirs. If none does,
/// `culprits` become the ranks that do not fit the root that fits most.
bool ComparedCalls::find_root(std::vector<std::int32_t>& culprits) const {
  constexpr std::size_t most_roots = 64;  // bounds the time
  std::vector<std::pair<std::uint32_t, std::int32_t>> roots;
  const auto add = [&](std::uint32_t side, std::int32_t member) {
    const std::pair root{side, member};
    if (roots.size() < most_roots && std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(root);
  };
  std::size_t null[2] = {0, 0}, made[2] = {0, 0};
  for (const Call& each : calls_) {
    ++made[each.side];
    if (each.call.root == root_rank) add(each.side, each.member);
    if (each.call.root >= 0) add(1 - each.side, each.call.root);
    if (each.call.root == null_rank) ++null[each.side];
  }
  // A member that has not made its call yet may be the root.
  for (const std::uint32_t side : {0u, 1u})
    if (made[side] < static_cast<std::size_t>(sizes_[side]) && null[side] == made[side] && made[1 - side] == 0)
      return true;
  std::size_t most = 0;
  bool tie = false;
  for (const auto& [side, member] : roots) {
    std::vector<std::int32_t> others;
    for (const Call& each : calls_)
      if (!agrees(each, side, member)) others.push_back(each.rank);
    if (others.empty()) return true;
    const std::size_t agreeing = calls_.size() - others.size();
    tie = agreeing == most || (tie && agreeing < most);
    if (agreeing > most) most = agreeing, culprits = std::move(others);
  }
  if (most == 0 || tie) {
    culprits.clear();
    for (const Call& each : calls_) culprits.push_back(each.rank);
  }
  std::sort(culprits.begin(), culprits.end());
  return false;
}

std::vector<CollectiveMismatch> find_mismatches(const Members& members) {
  std::map<CollectiveInstance, ComparedCalls> instances;  // only those in which somebody is
  each_call(
      members, false,
      [&](const RankSnapshot&, const CommunicatorSnapshot& communicator, std::uint32_t ordinal, const CollectiveCall&) {
        instances[{communicator.uid, ordinal}];
      });
  if (instances.empty()) return {};
  each_call(members, true,
            [&](const RankSnapshot& rank, const CommunicatorSnapshot& communicator, std::uint32_t ordinal,
                const CollectiveCall& call) {
              const auto found = instances.find({communicator.uid, ordinal});
              if (found != instances.end()) found->second.add(rank, communicator, call);
            });
  std::vector<CollectiveMismatch> result;
  for (auto& [instance, compared] : instances)
    if (auto mismatch = std::move(compared).mismatch(instance)) result.push_back(std::move(*mismatch));
  return result;
}

std::vector<CollectiveMismatch> FinishedCollectives::observe(const Members& members) {
  std::vector<CollectiveInstance> touched;
  for (const auto& [number, rank] : members.ranks())
    for (const ThreadSnapshot& thread : rank->threads) {
      std::uint64_t& next = next_[{number, rank->pid, rank->process_start, thread.slot}];
      for (const CallSnapshot& call : thread.finished) {
        if (call.number < next) continue;
        next = call.number + 1;
        const CommunicatorSnapshot* const communicator =
            comparable(*rank, call.communicator, call.ordinal, call.function);
        if (!communicator) continue;
        const CollectiveInstance instance{communicator->uid, call.ordinal};
        open_[instance].add(*rank, *communicator,
                            CollectiveCall::of(call.function, call.peer, call.bytes, call.operation));
        touched.push_back(instance);
      }
    }
  std::vector<CollectiveMismatch> result;
  for (const CollectiveInstance& instance : touched) {
    const auto entry = open_.find(instance);
    if (entry == open_.end()) continue;
    if (entry->second.made() < entry->second.members()) continue;
    if (auto mismatch = std::move(entry->second).mismatch(instance)) result.push_back(std::move(*mismatch));
    open_.erase(entry);
  }
  if (open_.size() > most_instances) open_.clear();  // calls whose other members have no record here
  return result;
}

}  // namespace bestride::inline telemetry
