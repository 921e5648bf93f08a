// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveShape: the numbers that the cost of a collective depends on. Every member of the communicator knows all of
// them.
#include <cstdint>
#include <string_view>

#include "model/topology.hpp"

namespace bestride::inline perfmodel {

/// Each stands for the blocking and the nonblocking form. reduce_scatter includes MPI_Reduce_scatter_block.
enum class Collective : std::uint8_t {
  allgather,
  allgatherv,
  broadcast,
  reduce_scatter,
  allreduce,
  reduce,
  gather,
  scatter,
  alltoall
};
inline constexpr int collective_count = 9;
std::string_view name(Collective) noexcept;
/// False if no collective has this name.
bool parse(std::string_view text, Collective* collective) noexcept;

struct CollectiveShape {
  Collective what = Collective::allgather;
  /// Bytes of the whole vector, 0 or more. allgather(v), gather: the result; broadcast, allreduce, reduce: the buffer;
  /// reduce_scatter: the input of one rank; scatter: the buffer of the root; alltoall: what one rank sends to all.
  std::int64_t bytes = 0;
  int nodes = 1;               ///< 1 or more
  int ranks = 1;               ///< of the communicator, `nodes` or more
  int max_ranks_per_node = 1;  ///< ranks on the fullest node
  int min_ranks_per_node = 0;  ///< ranks on the emptiest node; 0: unknown, assumed equal to the other nodes
  /// The number of ranks of one node whose predecessor in rank order is on another node, for the node that has most of
  /// them. 1: the ranks of every node are consecutive (block); max_ranks_per_node: no two are consecutive (cyclic). A
  /// flat ring enters a node this many times.
  int ring_entries = 1;
  bool blocking =
      true;  ///< false: the nonblocking and the persistent form, for which MPI libraries use other algorithms
};

/// Allocates nothing. Takes time proportional to the number of ranks, so it is called once for each communicator.
CollectiveShape shape_of(Collective what, std::int64_t bytes, bool blocking, const Topology& topology) noexcept;

}  // namespace bestride::inline perfmodel
