// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/costs.hpp"

#include <algorithm>
#include <bit>

namespace bestride::inline perfmodel {
namespace {

constexpr double delay = 20e-3;  ///< seconds of link traffic that a chunk may hold
constexpr std::int64_t min_chunk = 64 * 1024, max_chunk = 4 << 20;
constexpr std::int64_t window = 128 * 1024;  ///< bytes that a rank has in flight
constexpr std::int64_t min_piece = 4096;     ///< of a short slice that goes through a chain

bool is_chain(Collective what) noexcept { return what == Collective::broadcast || what == Collective::reduce; }

/// Consecutive steps of the exchange between nodes.
double steps_of(const CollectiveShape& shape) noexcept {
  const double others = shape.nodes - 1;
  switch (shape.what) {
    case Collective::allreduce: return 2 * others;
    case Collective::gather:
    case Collective::scatter: return 1;
    default: return others;
  }
}

/// Bytes that the busiest rank copies within the node, or reads to reduce them.
double copied_bytes(const CollectiveShape& shape) noexcept {
  const double all = static_cast<double>(shape.bytes), own = all / shape.ranks;
  if (shape.max_ranks_per_node == 1) {
    // Without a window the network transfers go directly to the user's buffer. The contributions to a reduction must
    // still be read.
    const bool reduces = shape.what == Collective::reduce_scatter || shape.what == Collective::allreduce ||
                         shape.what == Collective::reduce;
    return reduces ? all : 0;
  }
  switch (shape.what) {
    case Collective::allgather:
    case Collective::allgatherv: return all + own;
    case Collective::broadcast:
    case Collective::gather:
    case Collective::scatter: return all;
    case Collective::reduce_scatter:
      return 2 * all + own;  // copy in; a slice of the contributions of all ranks of the
                             // node; copy out
    case Collective::reduce: return 2 * all;
    case Collective::allreduce: return 3 * all;
    case Collective::alltoall: return 2 * all;
  }
  return all;
}

/// Bytes of an undivided message between two nodes: the part of one rank in a step.
double step_bytes(const CollectiveShape& shape) noexcept {
  const double slice = wire_lower_bound(shape) / shape.max_ranks_per_node;
  return is_chain(shape.what) ? slice : slice / steps_of(shape);
}

}  // namespace

LinkCosts LinkCosts::built_in() noexcept {
  return {.latency_s = 30e-6,
          .overhead_s = 2e-6,
          .wire_byte_s = 8 / (0.956 * 10e9),
          .stream_byte_s = 8 / (0.956 * 10e9),
          .copy_byte_s = 1 / 3e9,
          .node_sync_s = 2e-6};
}

double wire_lower_bound(const CollectiveShape& shape) noexcept {
  if (shape.nodes < 2) return 0;
  const double all = static_cast<double>(shape.bytes), nodes = shape.nodes, most = shape.max_ranks_per_node;
  switch (shape.what) {
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce_scatter: {
      // The bytes that are not on the emptiest node.
      const double ranks = shape.ranks, least = shape.min_ranks_per_node > 0 ? shape.min_ranks_per_node : ranks / nodes;
      return (ranks - least) / ranks * all;
    }
    case Collective::broadcast:
    case Collective::reduce: return all;
    case Collective::allreduce: return 2 * (nodes - 1) / nodes * all;
    case Collective::alltoall: return most * all * (shape.ranks - most) / shape.ranks;
    default: return (nodes - 1) / nodes * all;
  }
}

int messages_in_flight(std::int64_t bytes) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(window / std::max<std::int64_t>(bytes, 1), 2, 8));
}

ChunkPlan plan_chunks(const CollectiveShape& shape, const LinkCosts& link) noexcept {
  const double slice = step_bytes(shape);
  const double share = delay / (link.wire_of(shape.max_ranks_per_node) * shape.max_ranks_per_node);
  const double clamped = std::clamp(share, static_cast<double>(min_chunk), static_cast<double>(max_chunk));
  auto chunk = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(clamped)));
  if (link.piece_bytes > 0) chunk = std::min(chunk, link.piece_bytes);
  const auto whole = static_cast<std::int64_t>(slice < 1 ? 1 : slice > max_chunk * 4.0 ? max_chunk * 4.0 : slice);
  if (!is_chain(shape.what)) {
    chunk = std::min(chunk, whole);
  } else {
    const std::int64_t parts = std::max(4, 8 * (shape.nodes - 2));
    chunk = std::min(chunk, std::max({whole / parts, std::min<std::int64_t>(whole / 4, min_chunk), min_piece}));
  }
  // Round up to whole cache lines.
  chunk = std::max<std::int64_t>(64, (chunk + 63) / 64 * 64);
  return {.chunk_bytes = chunk, .in_flight = messages_in_flight(chunk)};
}

CollectiveCost hierarchical_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept {
  if (shape.bytes <= 0) return {};
  // A reduce is a reduction on all nodes, then a gather: the root's node gets its part of the partial results, and then
  // the results of the other nodes.
  const double more = shape.what == Collective::reduce && shape.nodes > 1 ? 2.0 * (shape.nodes - 1) / shape.nodes : 1;
  const double bytes = more * wire_lower_bound(shape), ranks = shape.max_ranks_per_node, wire = link.wire_of(ranks);
  const double copying = copied_bytes(shape) * link.copy_byte_s;
  // One synchronization each: window filled, network transfer complete, window read.
  const double waiting = ranks > 1 ? 3 * link.node_sync_s : 0;
  if (shape.nodes < 2) return {copying + waiting, 0};
  const double slice = bytes / ranks,
               chunk = std::min(static_cast<double>(plan_chunks(shape, link).chunk_bytes), slice);
  const double steps = steps_of(shape), chunks = std::max(slice / chunk, steps);
  double sending = bytes * wire + steps * link.latency_s + chunks * link.overhead_s;
  if (is_chain(shape.what)) sending += (steps - 1) * chunk * ranks * wire;
  // The longer of network transfer and copies hides the other, except for its first or last chunk.
  const double hidden = std::min(sending, copying);
  return {std::max(sending, copying) + hidden * chunk / slice + waiting, bytes};
}

}  // namespace bestride::inline perfmodel
