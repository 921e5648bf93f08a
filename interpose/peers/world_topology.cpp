// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/world_topology.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/services.hpp"
#include "model/discover.hpp"

namespace bestride::inline interpose {
namespace {

/// Static storage rather than the heap: an allocation could fail on one rank only. Never destroyed: MPI may be called
/// from destructors of other libraries.
union Held {
  constexpr Held() noexcept : nothing{} {}
  ~Held() {}
  char nothing;
  Topology topology;
};
constinit Held held;
constinit std::atomic<const Topology*> world{nullptr};

}  // namespace

const Topology* world_topology() noexcept { return world.load(std::memory_order_acquire); }

void learn_world_topology(const Locality& locality, bool all_ranks) noexcept {
  const std::string& file = Settings::get().text("BESTRIDE_TOPOLOGY");
  if (!all_ranks) {
    if (!file.empty() && locality.rank == 0)
      warn_once("topology",
                "BESTRIDE_TOPOLOGY is not used: it takes a job in which every rank has the preload; set "
                "BESTRIDE_ALL_RANKS=1 or auto");
    return;
  }
  if (locality.ranks < 2) return;
  DiscoverCalls calls;
  // All ranks have the same library, so the functions are missing on all ranks or on none.
  if (!calls.resolve(preload_services->library_symbol)) return;
  Discovery discovery = discover(calls, {.wanted = !file.empty() || simulated_nodes() || !locality.one_host(),
                                         .file = file.c_str(),
                                         .sound = !inject_failure(FailPoint::topology)});
  if (!discovery.problem.empty()) warn_once("topology", "%s", discovery.problem.c_str());
  if (!discovery.processors.empty())
    log_info_once("topology.processors", "this rank's core and NUMA domain: %s", discovery.processors.c_str());
  if (!discovery.topology) return;
  static_assert(std::is_nothrow_move_constructible_v<Topology>);
  new (&held.topology) Topology(std::move(*discovery.topology));
  world.store(&held.topology, std::memory_order_release);
  if (locality.rank == 0)
    log_info_once("topology.found", "%d ranks on %d nodes in %d groups, %d to %d ranks a node", held.topology.ranks(),
                  held.topology.nodes(), held.topology.groups(), held.topology.min_ranks_per_node(),
                  held.topology.max_ranks_per_node());
}

}  // namespace bestride::inline interpose
