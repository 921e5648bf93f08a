// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/mismatch.hpp"

#include <algorithm>

namespace bestride::inline telemetry {
namespace {

/// The communicator of a call, if its calls can be compared with those of other ranks; else null.
const CommunicatorSnapshot* comparable(const RankSnapshot& rank, std::uint32_t communicator, std::uint32_t ordinal,
                                       std::uint16_t function) {
  if (ordinal == 0 || function == no_function) return nullptr;
  const CommunicatorSnapshot* const known = rank.communicator(communicator);
  // In an intercommunicator, members may pass different roots.
  return known && known->uid != 0 && known->kind != CommunicatorKind::inter ? known : nullptr;
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

struct Compared {
  std::string name;
  std::vector<CollectiveMismatch::Variant> variants;
};

}  // namespace

std::vector<CollectiveMismatch> find_mismatches(const Members& members) {
  std::map<CollectiveInstance, Compared> instances;  // only those in which somebody is
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
              if (found == instances.end()) return;
              found->second.name = communicator.name;
              add_to_variants(found->second.variants, call, rank.world_rank);
            });
  std::vector<CollectiveMismatch> result;
  for (auto& [instance, compared] : instances) {
    if (compared.variants.size() < 2) continue;
    sort_variants(compared.variants);
    result.push_back({instance.communicator, compared.name, instance.ordinal, std::move(compared.variants)});
  }
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
        Instance& entry = open_[instance];
        entry.name = communicator->name;
        entry.members = std::max(entry.members, static_cast<std::size_t>(communicator->size));
        add_to_variants(entry.variants, CollectiveCall::of(call.function, call.peer, call.bytes, call.operation),
                        rank->world_rank);
        touched.push_back(instance);
      }
    }
  std::vector<CollectiveMismatch> result;
  for (const CollectiveInstance& instance : touched) {
    const auto entry = open_.find(instance);
    if (entry == open_.end()) continue;
    std::size_t made = 0;
    for (const auto& variant : entry->second.variants) made += variant.ranks.size();
    if (made < entry->second.members) continue;
    if (entry->second.variants.size() > 1) {
      sort_variants(entry->second.variants);
      result.push_back(
          {instance.communicator, entry->second.name, instance.ordinal, std::move(entry->second.variants)});
    }
    open_.erase(entry);
  }
  if (open_.size() > most_instances) open_.clear();  // calls whose other members have no record here
  return result;
}

}  // namespace bestride::inline telemetry
