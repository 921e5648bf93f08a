// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dispatch of the neighbor collectives to the memory of one node.
//
// The route cannot depend on a call's arguments: two neighbors know the size of the message between them only, and
// other pairs of ranks may exchange other sizes. So all blocking calls of a communicator go through OneNodeNeighbors
// once it exists, and all nonblocking ones through its NeighborQueue.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/dispatch_moved.hpp"
#include "interpose/collectives/neighbor_queue.hpp"
#include "interpose/collectives/one_node_neighbors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/report_entry.hpp"

namespace bestride::inline interpose {

namespace dispatch_detail {

/// One block for all neighbors.
class BlockForAll final : public Operands {
 public:
  explicit BlockForAll(UserBlocks block) noexcept : block_(std::move(block)) {}
  bool fill() noexcept { return block_.fill(); }
  Operand of(int) const noexcept override { return block_.of(0); }
  std::int64_t bytes(int) const noexcept override { return block_.bytes(0); }

 private:
  UserBlocks block_;
};

/// Packed bytes of blocks.
struct BlockBytes {
  std::int64_t sum = 0, longest = 0;
  /// False: the bytes are not known, or too many.
  bool add(std::int64_t bytes) noexcept {
    longest = std::max(longest, bytes);
    return bytes >= 0 && !__builtin_add_overflow(sum, bytes, &sum);
  }
};

// Blocks in the order of the neighbors `peers`; those of MPI_PROC_NULL are empty.
// - neighbor_bytes(): no value: an argument is invalid.
// - neighbor_gaps(): a block has gaps.
// - neighbor_blocks(): as blocks_of().

template <class Given>
std::optional<BlockBytes> neighbor_bytes(const Given& given, const std::vector<int>& peers) noexcept {
  // MPICH does not look at the type of no elements, but at a count even if there are no neighbors.
  if constexpr (!Given::has_arrays) {
    if (given.count == 0) return BlockBytes();
    if (given.count < 0) return std::nullopt;
  }
  const ElementSize element = element_size(given.type);
  if (element.packed < 0) return std::nullopt;
  if constexpr (Given::has_arrays) {
    // Empty arrays may be null pointers.
    if (peers.empty()) return BlockBytes();
    if (!given.counts || !given.at) return std::nullopt;
  } else if (element.packed > 0 && no_place(given.buffer, given.type)) {
    return std::nullopt;
  }
  BlockBytes all;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const std::int64_t bytes = packed_bytes(element, block_elements(given, static_cast<int>(i)).length());
    if (bytes < 0 || (peers[i] >= 0 && !all.add(bytes))) return std::nullopt;
  }
  if (all.sum > 0 && no_place(given.buffer, given.type)) return std::nullopt;
  return all;
}
template <class Buffer, class Count, class At>
std::optional<BlockBytes> neighbor_bytes(const TypedGiven<Buffer, Count, At>& given,
                                         const std::vector<int>& peers) noexcept {
  if (peers.empty()) return BlockBytes();
  if (!given.counts || !given.at || !given.types) return std::nullopt;
  BlockBytes all;
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (given.counts[i] < 0 || (peers[i] >= 0 && !all.add(given.bytes(static_cast<int>(i))))) return std::nullopt;
  return all;
}

/// That of the blocks; of no elements, any type.
template <class Given>
MPI_Datatype neighbor_type(const Given& given, const std::vector<int>& peers) noexcept {
  if constexpr (!Given::has_arrays)
    if (given.count == 0) return MPI_BYTE;
  return peers.empty() ? MPI_BYTE : given.type;
}
template <class Given>
bool neighbor_gaps(const Given& given, const std::vector<int>& peers) noexcept {
  return has_gaps(neighbor_type(given, peers));
}
template <class Buffer, class Count, class At>
bool neighbor_gaps(const TypedGiven<Buffer, Count, At>& given, const std::vector<int>& peers) noexcept {
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (peers[i] >= 0 && given.counts[i] > 0 && has_gaps(given.types[i])) return true;
  return false;
}

template <class Given>
UserBlocks neighbor_blocks(const Given& given, const std::vector<int>& peers, Access access, StagedBlocks& staged) {
  std::vector<Range> blocks(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (peers[i] >= 0) blocks[i] = block_elements(given, static_cast<int>(i));
  return UserBlocks(given.buffer, blocks, neighbor_type(given, peers), access, staged);
}
template <class Buffer, class Count>
BlockForAll neighbor_blocks(const OneBlock<Buffer, Count>& given, const std::vector<int>& peers, Access access,
                            StagedBlocks& staged) {
  const bool any = std::any_of(peers.begin(), peers.end(), [](int peer) { return peer >= 0; });
  const Range block{0, any ? std::int64_t{given.count} : 0};
  return BlockForAll(UserBlocks(given.buffer, {&block, 1}, neighbor_type(given, peers), access, staged));
}
template <class Buffer, class Count, class At>
TypedUserBlocks neighbor_blocks(const TypedGiven<Buffer, Count, At>& given, const std::vector<int>& peers,
                                Access access, StagedBlocks& staged) {
  TypedUserBlocks blocks(static_cast<int>(peers.size()));
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (peers[i] < 0)
      blocks.add(nullptr, 0, MPI_BYTE, access, staged);
    else
      blocks.add(given.place(rank), given.counts[i], given.types[i], access, staged);
  }
  return blocks;
}

}  // namespace dispatch_detail

namespace dispatch_detail {

template <class Out, class In>
std::optional<int> exchange_now(const char* call, NeighborForm form, const Out& out, const In& in, std::int64_t sent,
                                const Neighbors& neighbors, CommEntry& entry, MPI_Comm comm) {
  OneNodeNeighbors* const node = choose_one_node_neighbors(comm, entry, form, sent);
  if (!node) return std::nullopt;
  const Stopwatch watch(reporting());
  try {
    StagedBlocks staged(comm);
    auto from = neighbor_blocks(out, neighbors.destinations, Access::read, staged);
    auto to = neighbor_blocks(in, neighbors.sources, Access::written, staged);
    {
      TransferBatch batch;
      staged.copy_in();
      if (batch.flush()) return raise_error(comm);
    }
    require_packed(from.fill());
    node->exchange(form, from, to);
    to.complete();
    TransferBatch batch;
    staged.copy_out();
    if (batch.flush()) return raise_error(comm);
  } catch (const Error& why) {
    report_transfer_failure(why);
    return raise_error(comm);
  } catch (...) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
  if (reporting()) [[unlikely]]
    record_collective(call, "one node", sent, watch.seconds(), 0);
  return MPI_SUCCESS;
}

}  // namespace dispatch_detail

/// True if a neighbor collective is forwarded whatever its arguments are.
template <class... Tail>
bool leaves_neighbor_call(MPI_Comm comm) noexcept {
  if (gpu_runtime_detected() || reporting() || runtime().options().forced || packed_neighbor_blocks_gain())
    return false;
  const CommEntry* const entry = runtime().comms.find(comm);
  return entry && leaves_neighbors(*entry, blocking<Tail...>);
}

/// Returns the error of the call; no value: nothing was done, and the call is left to the library. `form`: the form of
/// the call, in whose order blocks arrive if several edges join the same two ranks; any form for an allgather, whose
/// blocks are all alike.
template <class Out, class In, class... Tail>
std::optional<int> dispatch_neighbor(const char* call, NeighborForm form, const Out& out, const In& in, MPI_Comm comm,
                                     Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  if (!entry || !may_share_memory(*entry)) return std::nullopt;
  const Neighbors& neighbors = entry->neighbors();
  const std::optional<BlockBytes> sent = neighbor_bytes(out, neighbors.destinations),
                                  received = neighbor_bytes(in, neighbors.sources);
  // A call that the library rejects on this rank must not be counted: the other members may not make it. But they agree
  // on each persistent collective.
  const bool good = sent && received && has_request(tail...) && out.buffer != MPI_IN_PLACE && in.buffer != MPI_IN_PLACE;
  if (!good && !persistent<Tail...>) return std::nullopt;
  if constexpr (blocking<Tail...> || persistent<Tail...>) make_wanted_neighbor_queue(comm, *entry);
  if constexpr (blocking<Tail...>) {
    return exchange_now(call, form, out, in, sent->sum, neighbors, *entry, comm);
  } else {
    std::shared_ptr<NeighborQueue> queue;
    if constexpr (persistent<Tail...>)
      queue = make_neighbor_queue(
          comm, *entry, form, good ? std::optional(std::max(sent->longest, received->longest)) : std::nullopt,
          good && (neighbor_gaps(out, neighbors.destinations) || neighbor_gaps(in, neighbors.sources)));
    else
      queue = choose_neighbor_queue(comm, *entry, form);
    if (!queue) return std::nullopt;
    Route to;
    to.queue = queue.get();
    to.owner = queue;
    to.bytes = sent->sum;
    return carry(
        to, comm, call,
        [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
          auto from = neighbor_blocks(out, neighbors.destinations, Access::read, staged);
          auto into = neighbor_blocks(in, neighbors.sources, Access::written, staged);
          return std::make_unique<NeighborOperation<decltype(from), decltype(into)>>(form, std::move(from),
                                                                                     std::move(into));
        },
        tail...);
  }
}

}  // namespace bestride::inline interpose
