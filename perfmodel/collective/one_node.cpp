// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/one_node.hpp"

#include <limits>

namespace bestride::inline perfmodel {
namespace {

constexpr std::int64_t kib = 1024, unbounded = std::numeric_limits<std::int64_t>::max();

/// Sizes of contiguous data at which shared memory is faster.
struct Bounds {
  std::int64_t least, most;
  bool per_pair;  ///< bytes for each pair of ranks; false: of the whole
};
constexpr Bounds bounds_of(Collective what) noexcept {
  switch (what) {
    case Collective::alltoall: return {1, 64 * kib, true};
    case Collective::allgather:
    case Collective::allgatherv: return {1 * kib, 16 * kib, true};
    case Collective::gather: return {1 * kib, 16 * kib, true};
    case Collective::scatter: return {16 * kib, 0, true};  // only with gaps
    case Collective::broadcast: return {512, 8 * kib, false};
    case Collective::allreduce: return {64, 256 * kib, false};
    case Collective::reduce_scatter: return {512, 512 * kib, false};
    case Collective::reduce: return {512, unbounded, false};
  }
  return {unbounded, unbounded, false};
}

}  // namespace

OneNodeChoice choose_on_one_node(Collective what, std::int64_t bytes, int ranks, bool crowded) noexcept {
  if (bytes <= 0 || ranks < 2) return OneNodeChoice::library;
  if (crowded) return OneNodeChoice::shared_memory;
  const Bounds bounds = bounds_of(what);
  const std::int64_t pairs = bounds.per_pair ? ranks : 1;
  if (bytes < bounds.least * pairs) return OneNodeChoice::library;
  return bytes <= bounds.most * pairs ? OneNodeChoice::shared_memory : OneNodeChoice::if_any_has_gaps;
}

}  // namespace bestride::inline perfmodel
