// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_set>

#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// The ranks that are on a cycle of required edges among ranks for which `counts` is true. Time and memory in
/// proportion to the ranks and the sizes of the different rank sets: Tarjan's strongly connected components (SIAM J.
/// Comput. 1, 1972) of the graph of ranks and rank sets.
std::unordered_set<std::int32_t> cycle_members(const WaitGraph& graph, const std::function<bool(std::int32_t)>& counts);

}  // namespace bestride::inline telemetry
