// SPDX-License-Identifier: Apache-2.0
// Predicts the cost of MPICH's collectives: which algorithm it selects (4.0.2,
// maint/tuning/coll/{ch4,mpir}/generic.json; the same tables in 5.0.1), and the bytes and steps of each. The bytes were
// compared with counted ones on 2 x 2 to 4 x 2 ranks in block and cyclic order.
//
// Where block and cyclic order differ, `spread` interpolates between them: 0 in block order, 1 in cyclic order.
#include <algorithm>
#include <bit>

#include "perfmodel/collective/costs.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr double kibibyte = 1024;

class Library {
 public:
  Library(const CollectiveShape& shape, const LinkCosts& link) noexcept
      : link_(link),
        all_(static_cast<double>(shape.bytes)),
        ranks_(shape.ranks),
        nodes_(shape.nodes),
        local_(shape.max_ranks_per_node),
        entries_(shape.ring_entries),
        spread_(local_ > 1 ? std::clamp((entries_ - 1) / (local_ - 1), 0.0, 1.0) : 0),
        levels_(std::bit_width(static_cast<unsigned>(shape.ranks) - 1u)),
        node_levels_(std::bit_width(static_cast<unsigned>(shape.nodes) - 1u)),
        local_levels_(std::bit_width(static_cast<unsigned>(shape.max_ranks_per_node) - 1u)),
        power_(std::bit_floor(static_cast<unsigned>(shape.ranks))),
        node_power_(std::bit_floor(static_cast<unsigned>(shape.nodes))) {}

  const CollectiveCost& cost() const noexcept { return cost_; }

  void allgather() noexcept {
    if (power_ == ranks_ && all_ < 512 * kibibyte) {
      for (double distance = 1; distance < ranks_; distance *= 2) exchange(distance, distance * all_ / ranks_);
    } else if (all_ < 80 * kibibyte) {
      rotate_by_doubling(all_ / ranks_);
    } else {
      ring();
    }
  }

  void broadcast(bool blocking) noexcept {
    if (blocking && ranks_ >= 8 && all_ >= 512 * kibibyte) {
      scatter();
      ring();
      return;
    }
    // First among the leaders, then within each node. With eight or more leaders, long buffers are scattered among them
    // and gathered again.
    if (nodes_ >= 8 && all_ >= 12 * kibibyte)
      cross(1, 2 * (nodes_ - 1) / nodes_ * all_, 2 * node_levels_);
    else
      cross(1, node_levels_ * all_, node_levels_);
    down_the_tree(local_levels_ * all_, local_levels_);
  }

  /// Recursive halving, or pairwise exchange.
  void reduce_scatter() noexcept {
    if (all_ < 512 * kibibyte) {
      fold(all_);
      for (double distance = power_ / 2; distance >= 1; distance /= 2) exchange(distance, all_ * distance / power_);
    } else {
      cross(local_, local_ * (ranks_ - local_) / ranks_ * all_, ranks_ - 1);
      inside((local_ - 1) * all_ / ranks_, 0);
    }
    combine(all_);
  }

  void allreduce(bool blocking) noexcept {
    if (blocking) {
      down_the_tree(local_levels_ * all_, local_levels_);
      combine(local_levels_ * all_);
      if (all_ <= 2 * kibibyte)
        cross(1, node_levels_ * all_, node_levels_);
      else
        leaders_halve(2);
      down_the_tree(local_levels_ * all_, local_levels_);
      return;
    }
    fold(all_);
    if (all_ <= 2 * kibibyte) {
      for (double distance = 1; distance < power_; distance *= 2) exchange(distance, all_);
    } else {
      for (double distance = 1; distance < power_; distance *= 2)
        exchange(distance, all_ / (2 * distance)), exchange(distance, all_ / (2 * distance));
    }
    fold(all_);
    combine(all_);
  }

  void reduce(bool blocking) noexcept {
    if (blocking) {
      down_the_tree(local_levels_ * all_, local_levels_);
      combine(local_levels_ * all_);
      if (all_ <= 2 * kibibyte)
        cross(1, node_levels_ * all_, node_levels_);
      else
        leaders_halve(2);
      return;
    }
    fold(all_);
    if (all_ <= 2 * kibibyte) {
      cross(1, node_levels_ * all_, levels_);
    } else {
      for (double distance = 1; distance < power_; distance *= 2) exchange(distance, all_ / (2 * distance));
      scatter();  // a gather: the same tree upwards
    }
    combine(all_);
  }

  /// A binomial tree over ranks that halves its data at each level. Every byte leaves the root's node, or arrives
  /// there, once.
  void scatter() noexcept {
    cross(1, (nodes_ - 1) / nodes_ * all_, levels_);
    down_the_tree(all_ / nodes_, 0);
  }

  void alltoall() noexcept {
    const double block = all_ / ranks_, off_node = local_ * (ranks_ - local_) * block;
    if (block <= 256 && ranks_ >= 8) {
      // Bruck's algorithm: half of all blocks at every level.
      for (double distance = 1; distance < ranks_; distance *= 2) rotate(distance, all_ / 2);
    } else {
      cross(local_, off_node, block <= 32 * kibibyte ? 1 : ranks_ - 1);
      cost_.seconds += (ranks_ - 1) * link_.overhead_s;
    }
    inside(local_ / ranks_ * all_, 0);
  }

  /// Accounts for bytes that the approximation omits for an odd number of ranks.
  void at_least(double bytes) noexcept {
    if (cost_.wire_bytes >= bytes) return;
    cost_.seconds += (bytes - cost_.wire_bytes) * link_.wire_of(1);
    cost_.wire_bytes = bytes;
  }

 private:
  /// `bytes` over a node's link, sent by `streams` of its ranks concurrently, in `steps` steps.
  void cross(double streams, double bytes, double steps) noexcept {
    if (nodes_ < 2) return;
    cost_.wire_bytes += bytes;
    cost_.seconds += bytes * link_.wire_of(streams) + steps * (link_.latency_s + link_.overhead_s);
  }
  /// Through MPI's shared memory, with each rank sending and receiving: one copy in and one copy out.
  void inside(double bytes, double steps) noexcept {
    if (local_ > 1) cost_.seconds += 2 * bytes * link_.copy_byte_s + steps * link_.node_sync_s;
  }
  /// From one rank to another; the receiver copies out while the sender copies in.
  void down_the_tree(double bytes, double steps) noexcept {
    if (local_ > 1) cost_.seconds += bytes * link_.copy_byte_s + steps * link_.node_sync_s;
  }
  /// True if ranks at this distance are on different nodes, in cyclic order.
  bool crosses_in_turn(double distance) const noexcept {
    return static_cast<std::int64_t>(distance) % static_cast<std::int64_t>(nodes_) != 0;
  }
  void combine(double bytes) noexcept { cost_.seconds += bytes * link_.copy_byte_s; }

  /// Each rank r exchanges with r xor distance, `bytes` in each direction.
  void exchange(double distance, double bytes) noexcept {
    const bool block_crosses = distance >= local_, cyclic_crosses = crosses_in_turn(distance);
    const double crossing = nodes_ < 2 ? 0 : block_crosses * (1 - spread_) + cyclic_crosses * spread_;
    cross(local_, crossing * local_ * bytes, crossing);
    inside((1 - crossing) * bytes, 1 - crossing);
  }
  /// Each rank sends to r - distance.
  void rotate(double distance, double bytes) noexcept {
    const double block = std::min({distance, local_, ranks_ - distance}),
                 cyclic = crosses_in_turn(distance) ? local_ : 0;
    const double streams = nodes_ < 2 ? 0 : block * (1 - spread_) + cyclic * spread_;
    if (streams > 0)
      cross(streams, streams * bytes, 1);
    else
      inside(bytes, 1);
  }
  void rotate_by_doubling(double block) noexcept {
    for (double distance = 1; distance < ranks_; distance *= 2)
      rotate(distance, std::min(distance, ranks_ - distance) * block);
  }
  void ring() noexcept {
    const double block = all_ / ranks_, steps = ranks_ - 1;
    cross(entries_, entries_ * steps * block, steps);
    // Neighbors within a node copy at the same time.
    const double copying = local_ > entries_ || nodes_ < 2 ? 2 * steps * block * link_.copy_byte_s : 0;
    const double wire = nodes_ < 2 ? 0 : entries_ * steps * block * link_.wire_of(entries_);
    cost_.seconds += std::max(0.0, copying - wire) + (nodes_ < 2 ? steps * link_.node_sync_s : 0);
  }
  /// Ranks beyond a power of two first pass their data to a neighbor.
  void fold(double bytes) noexcept {
    if (power_ == ranks_) return;
    const double crossing = nodes_ < 2 ? 0 : local_ > 1 ? spread_ : 1;
    cross(1, crossing * bytes / 2, crossing);  // of two neighbors one sends and one receives
    inside((1 - crossing) * bytes, 1 - crossing);
  }
  /// One rank for each node: recursive halving, then doubling.
  void leaders_halve(double phases) noexcept {
    cross(1, phases * (node_power_ - 1) / node_power_ * all_ + (node_power_ != nodes_ ? all_ : 0),
          phases * node_levels_);
    combine(all_);
  }

  const LinkCosts& link_;
  const double all_, ranks_, nodes_, local_, entries_, spread_;
  const double levels_, node_levels_, local_levels_;  ///< log2, rounded up
  const double power_, node_power_;                   ///< the largest power of two not above
  CollectiveCost cost_;
};

}  // namespace

CollectiveCost library_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept {
  if (shape.bytes <= 0 || shape.ranks < 2) return {};
  Library library(shape, link);
  switch (shape.what) {
    case Collective::allgather:
    case Collective::allgatherv: library.allgather(); break;
    case Collective::broadcast: library.broadcast(shape.blocking); break;
    case Collective::reduce_scatter: library.reduce_scatter(); break;
    case Collective::allreduce: library.allreduce(shape.blocking); break;
    case Collective::reduce: library.reduce(shape.blocking); break;
    case Collective::gather:
    case Collective::scatter: library.scatter(); break;
    case Collective::alltoall: library.alltoall(); break;
  }
  library.at_least(wire_lower_bound(shape));
  return library.cost();
}

}  // namespace bestride::inline perfmodel
