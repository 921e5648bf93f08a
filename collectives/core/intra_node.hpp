// SPDX-License-Identifier: Apache-2.0
#pragma once
// IntraNodeExchange: the allgather of a node's own vector inside the node. At the start each rank has its part; at the
// end each rank has the whole vector.
#include <cstdint>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

class IntraNodeExchange {
 public:
  /// Both outlive this object. `piece`: bytes handed over at a time, at most a slot. May throw std::bad_alloc.
  IntraNodeExchange(Hierarchy& hierarchy, const NodeVectors& vectors, std::int64_t piece);

  /// Adds to `tasks` the tasks that pass this rank's part to its neighbors and take theirs. These tasks must end
  /// before this object is destroyed.
  void exchange(std::vector<Task>& tasks);
  /// True if all bytes of a range of the node's own vector are in this rank's buffer.
  bool here(Range range) const noexcept;

 private:
  Task give();
  Task take(int q);

  Hierarchy& h_;
  const NodeVectors& vectors_;
  const std::int64_t piece_;
  std::vector<std::int64_t> taken_;  ///< by local rank: the offset up to which its part has arrived
};

}  // namespace bestride::inline collectives
