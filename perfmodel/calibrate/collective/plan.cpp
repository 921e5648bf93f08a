// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/plan.hpp"

namespace bestride::inline perfmodel {

std::string CollectivePoint::id() const {
  return std::string(name(what)) + (blocking ? ".blocking." : ".nonblocking.") + std::to_string(size);
}

std::vector<CollectivePoint> make_collective_plan(bool quick) {
  using enum Collective;
  static const std::vector<std::vector<int>> levels{{4, 2}, {5, 0}, {3, 1}, {6}};
  std::vector<CollectivePoint> plan;
  for (std::size_t level = 0; level < (quick ? 2 : levels.size()); ++level)
    for (int size : levels[level])
      for (bool blocking : {true, false})
        for (Collective what : {allgather, reduce_scatter, allreduce, broadcast, alltoall, reduce, gather, scatter})
          plan.push_back({what, blocking, size});
  return plan;
}

}  // namespace bestride::inline perfmodel
