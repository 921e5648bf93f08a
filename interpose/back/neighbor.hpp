// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rewritten arguments of a neighbour collective, and what is owed for them.
//
// MPI_Neighbor_alltoallw names a type per neighbour, so each block is a side of its own, and any strategy will do. The other four
// have one type for all blocks, at multiples of its extent: there only packing all blocks into one buffer keeps their places
// expressible. Nothing arrives from MPI_PROC_NULL (the edge of a grid that is not periodic): such a block is never unpacked.
#include <mpi.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "interpose/back/owed.hpp"
#include "interpose/back/sides.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {

/// One direction of MPI_Neighbor_alltoallw. Kind: Outgoing or Incoming.
template <class Kind, class Count>
class TypedBlocks {
 public:
  /// True if some block is handed to MPI otherwise than the user gave it. May throw std::bad_alloc. `ranks`: the neighbours.
  bool prepare(const void* base, const Count* counts, const MPI_Aint* displacements, const MPI_Datatype* types,
               const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    const std::size_t n = ranks.size();
    counts_.assign(counts, counts + n);
    displacements_.assign(displacements, displacements + n);
    types_.assign(types, types + n);
    sides_.resize(n);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      TypeEntry* entry = worth_a_look(types[i], counts[i]);
      if (!entry) continue;
      if (reused) entry->expect_reuse();
      auto* at = const_cast<char*>(static_cast<const char*>(base)) + displacements[i];
      // A neighbour's call may go untouched as a whole (an unknown topology, no memory): nothing is promised here.
      if (!sides_[i].prepare(at, counts[i], entry, ranks[i], comm, largest_count<Count>, {.trusting = false})) continue;
      any = true;
      counts_[i] = static_cast<Count>(sides_[i].count());
      displacements_[i] = static_cast<char*>(sides_[i].buffer()) - static_cast<const char*>(base);
      types_[i] = sides_[i].type();
    }
    return any;
  }
  void fill() noexcept {
    for (Kind& side : sides_) side.fill();
  }
  void settle() noexcept {
    for (Kind& side : sides_) side.settle_whole();
  }
  void release() noexcept {
    for (Kind& side : sides_) side.release();
  }
  const std::vector<Kind>& sides() const noexcept { return sides_; }
  const Count* counts() const noexcept { return counts_.data(); }
  const MPI_Aint* displacements() const noexcept { return displacements_.data(); }
  const MPI_Datatype* types() const noexcept { return types_.data(); }

 private:
  std::vector<Kind> sides_;
  std::vector<Count> counts_;
  std::vector<MPI_Aint> displacements_;
  std::vector<MPI_Datatype> types_;
};

/// One direction of a call with one type for all blocks: all of them packed, one after the other, in one buffer.
template <class Count, class Displacement>
class PackedBlocks {
 public:
  /// Block i holds count(i) elements and begins displacement(i) elements from `base`. False: forward. May throw std::bad_alloc.
  template <class CountOf, class DisplacementOf>
  bool prepare(CallKind kind, const void* base, CountOf count, DisplacementOf displacement, MPI_Datatype type,
               const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    TypeEntry* entry = worth_a_look(type);
    if (!entry) return false;
    if (reused) entry->expect_reuse();
    if (entry->decoded_state() != TypeEntry::State::useful) return false;
    std::int64_t total = 0;
    blocks_.reserve(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Block block;
      block.live = ranks[i] != MPI_PROC_NULL && count(i) > 0;
      if (count(i) < 0) return false;
      if (count(i) > 0) {
        Plan* plan = find_plan(*entry, count(i));
        if (!plan || plan->bytes() <= 0) return false;
        block.plan = PlanRef(plan);
        block.bytes = plan->bytes();
        block.user = const_cast<char*>(static_cast<const char*>(base)) + displacement(i) * entry->extent();
        if (!address_is_sound(block.user, *plan->layout())) return false;
        // One strategy for all: every block that moves has to be worth it.
        if (block.live && plan->choose(in_exchange(kind), runtime().distance(comm, ranks[i])) != Strategy::pack) return false;
        if (!(block.packer = plan->packer())) return false;
      }
      block.at = total;
      total += block.bytes;
      if (block.bytes > largest_count<Count> || total > std::numeric_limits<Displacement>::max()) return false;
      counts_.push_back(static_cast<Count>(block.bytes));
      displacements_.push_back(static_cast<Displacement>(block.at));
      blocks_.push_back(std::move(block));
    }
    if (total == 0 || total > runtime().options().pack_limit) return false;
    lease_ = Lease(runtime().pool, total);
    return static_cast<bool>(lease_);
  }
  void fill() noexcept {
    for (const Block& block : blocks_)
      if (block.live) block.packer->pack(lease_.data() + block.at, block.user);
  }
  void settle() noexcept {
    if (lease_)
      for (const Block& block : blocks_)
        if (block.live) block.packer->unpack(block.user, lease_.data() + block.at);
  }
  void release() noexcept { lease_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(lease_); }
  void* buffer() const noexcept { return lease_.data(); }
  const Count* counts() const noexcept { return counts_.data(); }
  const Displacement* displacements() const noexcept { return displacements_.data(); }
  Plan* plan() const noexcept { return blocks_.empty() ? nullptr : blocks_.front().plan.get(); }

 private:
  struct Block {
    PlanRef plan;
    const Packer* packer = nullptr;
    char* user = nullptr;
    std::int64_t bytes = 0;
    std::int64_t at = 0;  ///< in the buffer
    bool live = false;
  };
  std::vector<Block> blocks_;
  std::vector<Count> counts_;
  std::vector<Displacement> displacements_;
  Lease lease_;
};

/// What a neighbour collective owes: `Out` and `In` are directions as above.
template <class Out, class In>
struct Exchange final : Owed {
  Out out;
  In in;
  void fill() noexcept override { out.fill(); }
  void settle(bool good, const MPI_Status*) noexcept override {
    if (good) in.settle();
    if (!persistent) {
      out.release();
      in.release();
    }
  }
  bool wants_status() const noexcept override { return false; }
};

/// The neighbours of `comm`, or nullptr if it is not known to be a valid communicator with a topology.
inline const Neighbours* neighbours_of(MPI_Comm comm) noexcept {
  CommEntry* entry = runtime().comms.find(comm);
  if (!entry) return nullptr;
  const Neighbours& neighbours = entry->neighbours();
  return neighbours.known ? &neighbours : nullptr;
}

}  // namespace bestride
