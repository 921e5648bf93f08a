// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveShape: the few numbers that a collective's cost depends on. All of them are known to every member of the communicator.
#include <cstdint>
#include <string_view>

#include "model/topology.hpp"

namespace bestride {

/// Of each the blocking and the nonblocking form; reduce_scatter is MPI_Reduce_scatter_block, too.
enum class Collective : std::uint8_t { allgather, allgatherv, broadcast, reduce_scatter, allreduce, reduce, gather, scatter, alltoall };
inline constexpr int collective_count = 9;
std::string_view name(Collective) noexcept;
/// False: no collective is called so.
bool parse(std::string_view text, Collective* collective) noexcept;

struct CollectiveShape {
  Collective what = Collective::allgather;
  /// The whole vector: allgather(v), gather: the result; broadcast, allreduce, reduce: the buffer; reduce_scatter: one rank's input;
  /// scatter: what the root has; alltoall: all that one rank sends. 0 or more.
  std::int64_t bytes = 0;
  int nodes = 1;           ///< 1 or more
  int ranks = 1;           ///< of the communicator, `nodes` or more
  int most_on_a_node = 1;  ///< ranks of the fullest node
  int least_on_a_node = 0; ///< ranks of the emptiest; 0: not known, taken for as many as on any other
  /// Ranks of one node whose predecessor in rank order is on another node; of the node that has most. 1: every node's ranks follow one
  /// another (block), most_on_a_node: none of them do (cyclic). It is what a flat ring brings into a node, in rings.
  int ring_entries = 1;
  bool blocking = true;  ///< false: the nonblocking and the persistent form, for which MPI libraries have other algorithms
};

/// No allocation; as long as the communicator has ranks, so made once for a communicator.
CollectiveShape shape_of(Collective what, std::int64_t bytes, bool blocking, const Topology& topology) noexcept;

}  // namespace bestride
