// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/mismatch.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {
namespace {

using Instance = std::pair<std::uint64_t, std::uint32_t>;  ///< uid, ordinal
struct Instances {
  std::string name;
  std::vector<CollectiveMismatch::Variant> variants;
};

bool has_root(std::uint16_t function) {
  const CallKind kind = kind_of(function, true);
  return kind == CallKind::from_root || kind == CallKind::to_root;
}

/// Calls that move the same number of bytes on every rank, also with MPI_IN_PLACE.
bool has_equal_bytes(std::uint16_t function) {
  static constexpr const char* known[] = {"MPI_Bcast",      "MPI_Ibcast", "MPI_Reduce", "MPI_Ireduce", "MPI_Allreduce",
                                          "MPI_Iallreduce", "MPI_Scan",   "MPI_Iscan",  "MPI_Exscan",  "MPI_Iexscan"};
  const std::string name = function_name(function);
  return std::find(std::begin(known), std::end(known), name) != std::end(known);
}

class Comparison {
 public:
  explicit Comparison(const Members& members) : members_(members) {}

  std::vector<CollectiveMismatch> find() {
    each_call(/*finished=*/false, [this](const RankSnapshot&, const Instance& instance, auto...) {
      instances_[instance];  // only what somebody is in
    });
    each_call(true, [this](auto&... arguments) { add(arguments...); });
    std::vector<CollectiveMismatch> result;
    for (auto& [instance, found] : instances_) {
      if (found.variants.size() < 2) continue;
      std::stable_sort(found.variants.begin(), found.variants.end(),
                       [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
      result.push_back({instance.first, found.name, instance.second, std::move(found.variants)});
    }
    return result;
  }

 private:
  template <class Visit>
  void each_call(bool finished, Visit visit) const {
    for (const auto& [number, rank] : members_.ranks()) {
      const auto pass_on = [&, rank = rank](std::uint32_t index, std::uint32_t ordinal, std::uint16_t function,
                                            std::int32_t root, std::uint64_t bytes) {
        if (ordinal == 0 || function == no_function) return;
        const CommunicatorSnapshot* const communicator = rank->communicator(index);
        // In an intercommunicator the root differs by right.
        if (!communicator || communicator->uid == 0 || communicator->kind == CommunicatorKind::inter) return;
        const Instance instance{communicator->uid, ordinal};
        visit(*rank, instance, *communicator, function, root, bytes);
      };
      for (const ThreadSnapshot& thread : rank->threads) {
        if (thread.current)
          pass_on(thread.current->communicator, thread.current->ordinal, thread.current->function, thread.current->peer,
                  thread.current->bytes);
        for (const CallSnapshot& call : thread.finished)
          if (finished) pass_on(call.communicator, call.ordinal, call.function, call.peer, call.bytes);
      }
      for (const RequestSnapshot& request : rank->requests)
        pass_on(request.communicator, request.ordinal, request.function, request.peer, request.bytes);
    }
  }

  void add(const RankSnapshot& rank, const Instance& instance, const CommunicatorSnapshot& communicator,
           std::uint16_t function, std::int32_t root, std::uint64_t bytes) {
    const auto found = instances_.find(instance);
    if (found == instances_.end()) return;
    found->second.name = communicator.name;
    if (!has_root(function)) root = no_rank;
    if (!has_equal_bytes(function)) bytes = 0;
    auto& variants = found->second.variants;
    auto variant = std::find_if(variants.begin(), variants.end(), [&](const auto& v) {
      return v.root == root && (v.bytes == bytes || v.bytes == 0 || bytes == 0) &&
             function_name(v.function) == function_name(function);
    });
    if (variant == variants.end()) variant = variants.insert(variants.end(), {function, root, bytes, {}});
    // A nonblocking call is found as a request and as a finished call.
    if (variant->ranks.empty() || variant->ranks.back() != rank.world_rank) variant->ranks.push_back(rank.world_rank);
  }

  const Members& members_;
  std::map<Instance, Instances> instances_;
};

}  // namespace

std::vector<CollectiveMismatch> find_mismatches(const Members& members) { return Comparison(members).find(); }

}  // namespace bestride::inline telemetry
