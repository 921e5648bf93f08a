// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/world.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/services.hpp"
#include "model/discover.hpp"

namespace bestride {
namespace {

/// Not on the heap, where a rank might be the only one that lacks memory for it. Never destroyed: MPI may be called from other
/// libraries' destructors.
union Held {
  constexpr Held() noexcept : nothing{} {}
  ~Held() {}
  char nothing;
  Topology topology;
};
constinit Held held;
constinit std::atomic<const Topology*> world{nullptr};

/// MPICH's own variables for tests: one host counts as several nodes.
bool pretended_nodes() noexcept {
  for (const char* name : {"MPIR_CVAR_NUM_CLIQUES", "MPIR_CVAR_ODD_EVEN_CLIQUES"})
    if (const char* text = std::getenv(name); text && *text) return true;
  return false;
}

}  // namespace

const Topology* world_topology() noexcept { return world.load(std::memory_order_acquire); }

void learn_world_topology(const Locality& locality, bool everywhere) noexcept {
  const std::string& file = Settings::get().text("BESTRIDE_TOPOLOGY");
  if (!everywhere) {
    if (!file.empty() && locality.rank == 0)
      say_once("topology", "BESTRIDE_TOPOLOGY is not used: it takes a job in which every rank has the preload; set BESTRIDE_EVERYWHERE=1");
    return;
  }
  if (locality.ranks < 2) return;
  DiscoverCalls calls;
  // The same library on all ranks lacks it on all.
  if (!calls.resolve(front_services->library_symbol)) return;
  Discovery discovery = discover(calls, {.wanted = !file.empty() || pretended_nodes() || !locality.one_host(),
                                         .file = file.c_str(),
                                         .sound = !fail_here(FailPoint::topology)});
  if (!discovery.trouble.empty()) say_once("topology", "%s", discovery.trouble.c_str());
  if (!discovery.processors.empty())
    say_info("topology.processors", "this rank's core and NUMA domain: %s", discovery.processors.c_str());
  if (!discovery.topology) return;
  static_assert(std::is_nothrow_move_constructible_v<Topology>);
  new (&held.topology) Topology(std::move(*discovery.topology));
  world.store(&held.topology, std::memory_order_release);
  if (locality.rank == 0)
    say_info("topology.found", "%d ranks on %d nodes in %d groups, %d to %d ranks a node", held.topology.ranks(), held.topology.nodes(),
             held.topology.groups(), held.topology.least_on_a_node(), held.topology.most_on_a_node());
}

}  // namespace bestride
