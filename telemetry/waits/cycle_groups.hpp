// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// Ranks that wait for each other.
struct CycleGroup {
  std::vector<std::int32_t> ranks;  ///< ascending
  /// The group waits for no other group: what holds it up is in the group itself.
  bool final = true;
};

/// The groups of ranks that are connected by cycles of such edges, among ranks for which `counts` is true. Time and
/// memory in proportion to the ranks and the sizes of the different rank sets: Tarjan's strongly connected components
/// (SIAM J. Comput. 1, 1972) of the graph of ranks and rank sets.
std::vector<CycleGroup> cycle_groups(const WaitGraph& graph, const std::function<bool(std::int32_t)>& counts,
                                     Edges followed = Edges::required);

}  // namespace bestride::inline telemetry
