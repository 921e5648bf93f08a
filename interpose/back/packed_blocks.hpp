// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of a neighbour collective that has one type for all of them, at multiples of its extent: only packing all of them into
// one buffer keeps their places expressible. Nothing arrives from MPI_PROC_NULL (the edge of a grid that is not periodic): such
// a block is never unpacked.
#include <mpi.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/sides.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {

/// One direction of a call with one type for all blocks: all of them packed, one after the other, in one buffer.
template <class Count, class Displacement>
class PackedBlocks {
 public:
  /// Block i holds count(i) elements and begins displacement(i) elements from `base`. False: forward. May throw std::bad_alloc.
  template <class CountOf, class DisplacementOf>
  bool prepare(CallKind kind, const void* base, CountOf count, DisplacementOf displacement, MPI_Datatype type,
               const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    if (gpu_in_play()) [[unlikely]] {
      if (prepare_on_gpu(kind, base, count, displacement, type, ranks, comm)) return true;
      if (refused_) return false;
      blocks_.clear();
      counts_.clear();
      displacements_.clear();
    }
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
      if (block.live) {
        if (block.staging) Together::move(block.staging, cuda::Direction::pack, 0, block.bytes);
        else block.packer->pack(lease_.data() + block.at, block.user);
      }
  }
  void settle() noexcept {
    if (room_)
      for (const Block& block : blocks_)
        if (block.live) Together::move(block.staging, cuda::Direction::unpack, 0, block.bytes);
    if (lease_)
      for (const Block& block : blocks_)
        if (block.live) block.packer->unpack(block.user, lease_.data() + block.at);
  }
  void release() noexcept { lease_.release(); }
  explicit operator bool() const noexcept { return lease_ || room_; }
  void* buffer() const noexcept { return room_ ? room_->data() : lease_.data(); }
  /// What MPI is handed: counts() and displacements() are in these.
  MPI_Datatype type() const noexcept { return type_; }
  /// Device memory that could not be moved, or for which there is no memory: the call must not be made.
  bool refused() const noexcept {
    if (refused_) return true;
    for (const Block& block : blocks_)
      if (block.staging && block.staging->failed()) return true;
    return false;
  }
  int raise() const noexcept { return bestride::raise(comm_); }
  const Count* counts() const noexcept { return counts_.data(); }
  const Displacement* displacements() const noexcept { return displacements_.data(); }
  Plan* plan() const noexcept { return blocks_.empty() ? nullptr : blocks_.front().plan.get(); }
  void note_in_report(CallId id) const noexcept {
    note(id, plan(), CallKind::send, *this ? Strategy::pack : Strategy::forward, "model", 0);
  }

 private:
  /// Blocks in device memory, staged in one room. False: they are not, unless refused_.
  template <class CountOf, class DisplacementOf>
  bool prepare_on_gpu(CallKind kind, const void* base, CountOf count, DisplacementOf displacement, MPI_Datatype type, const std::vector<int>& ranks,
                      MPI_Comm comm) {
    TypeEntry* entry = known_type(type);
    if (!entry || entry->decoded_state() == TypeEntry::State::opaque || entry->decoded_state() == TypeEntry::State::empty) return false;
    std::vector<Place> places(ranks.size());
    bool any = false, all_alike = true;
    std::int64_t total = 0;
    blocks_.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Block& block = blocks_[i];
      if (count(i) < 0) return false;
      block.user = const_cast<char*>(static_cast<const char*>(base)) + displacement(i) * entry->extent();
      block.live = ranks[i] != MPI_PROC_NULL && count(i) > 0;
      if (block.live) places[i] = find_place(block.user, count(i), entry);
      any = any || places[i].by_gpu;
      if (block.live && !places[i].by_gpu) all_alike = false;
      if (__builtin_mul_overflow(std::int64_t{count(i)}, entry->size(), &block.bytes)) return false;
      block.at = total;
      total += block.bytes;
    }
    if (!any || (gpu_aware() && all_alike && entry->decoded_state() == TypeEntry::State::contiguous)) return false;
    comm_ = comm;
    refused_ = true;  // until all is well
    const std::int64_t unit = entry->leaf_size() != 0 ? entry->leaf_size() : 1;
    type_ = entry->leaf_size() != 0 ? entry->leaf() : MPI_BYTE;
    for (Block& block : blocks_) {
      if (block.bytes / unit > largest_count<Count> || block.at / unit > std::numeric_limits<Displacement>::max()) {
        say_not_moved({"its counts do not fit this call; the MPI_Count form (_c) takes them"});
        return false;
      }
      counts_.push_back(static_cast<Count>(block.bytes / unit));
      displacements_.push_back(static_cast<Displacement>(block.at / unit));
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      if (!block.live) continue;
      // A block of host memory among blocks of device memory is moved by the CPU.
      if (!places[i].by_gpu) places[i].memory.kind = cuda::MemoryKind::mixed;
      if (!places[i].layout) places[i].layout = entry->layout(count(i));
      if (!room_ && places[i].by_gpu) {
        const Result<cuda::DevicePtr> device = cuda::Device::of(places[i].memory);
        room_ = Room::make(device ? *device : nullptr, total, gpu_aware() && all_alike);
      }
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      if (!block.live) continue;
      const Errand errand{in_exchange(kind), runtime().distance(comm, ranks[i])};
      Result<StagingPtr> staging = room_ && places[i].layout ? Staging::make(places[i], block.user, comm, errand, room_, block.at)
                                                            : Error{"no memory for its blocks"};
      if (!staging) {
        say_not_moved(staging.error());
        return false;
      }
      block.staging = std::move(*staging);
    }
    refused_ = false;
    return true;
  }

  struct Block {
    PlanRef plan;
    const Packer* packer = nullptr;
    char* user = nullptr;
    std::int64_t bytes = 0;
    std::int64_t at = 0;  ///< in the buffer
    bool live = false;
    StagingPtr staging;  ///< device memory
  };
  std::vector<Block> blocks_;
  std::vector<Count> counts_;
  std::vector<Displacement> displacements_;
  Lease lease_;
  std::shared_ptr<Room> room_;
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool refused_ = false;
};

}  // namespace bestride
