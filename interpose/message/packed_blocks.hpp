// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of a neighbor collective with one type for all blocks, at multiples of its extent. Respelled blocks could
// not be placed with these displacements, so all blocks are packed into one buffer. Nothing arrives from MPI_PROC_NULL
// (the edge of a non-periodic grid): such a block is never unpacked.
#include <mpi.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/objects/plan_cache.hpp"

namespace bestride::inline interpose {

/// One direction of such a call: all blocks packed one after the other in one buffer.
template <class Count, class Displacement>
class PackedBlocks {
 public:
  /// Block i holds count(i) elements and starts displacement(i) extents from `base`. Returns false if the call is to be
  /// forwarded. May throw std::bad_alloc.
  template <class CountOf, class DisplacementOf>
  bool prepare(CallKind kind, const void* base, CountOf count, DisplacementOf displacement, MPI_Datatype type,
               const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    if (gpu_runtime_detected()) [[unlikely]] {
      if (prepare_device(kind, base, count, displacement, type, ranks, comm)) return true;
      if (failed_) return false;
      blocks_.clear();
      counts_.clear();
      displacements_.clear();
    }
    TypeEntry* entry = find_candidate(type);
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
        if (!address_is_plausible(block.user, *plan->layout())) return false;
        // One strategy for all blocks: packing must pay for every block that moves.
        if (block.live && plan->choose(in_exchange(kind), runtime().distance(comm, ranks[i])) != Strategy::pack)
          return false;
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
    lease_ = BufferLease(runtime().pool, total);
    return static_cast<bool>(lease_);
  }
  void fill() noexcept {
    if (!*this) return;  // prepare() may have returned false after some blocks
    for (const Block& block : blocks_)
      if (block.live) {
        if (block.staging)
          TransferBatch::move(block.staging, Direction::pack, 0, block.bytes);
        else
          block.packer->pack(lease_.data() + block.at, block.user);
      }
  }
  void complete() noexcept {
    if (staging_buffer_)
      for (const Block& block : blocks_)
        if (block.live) TransferBatch::move(block.staging, Direction::unpack, 0, block.bytes);
    if (lease_)
      for (const Block& block : blocks_)
        if (block.live) block.packer->unpack(block.user, lease_.data() + block.at);
  }
  void release() noexcept { lease_.release(); }
  explicit operator bool() const noexcept { return lease_ || staging_buffer_; }
  void* buffer() const noexcept { return staging_buffer_ ? staging_buffer_->data() : lease_.data(); }
  /// The type that MPI is given; counts() and displacements() are in units of it.
  MPI_Datatype type() const noexcept { return type_; }
  /// Device memory that could not be moved, or for which there is no memory: the call must not be made.
  bool failed() const noexcept {
    if (failed_) return true;
    for (const Block& block : blocks_)
      if (block.staging && block.staging->failed()) return true;
    return false;
  }
  int raise_error() const { return bestride::raise_error(comm_); }
  const Count* counts() const noexcept { return counts_.data(); }
  const Displacement* displacements() const noexcept { return displacements_.data(); }
  Plan* plan() const noexcept { return blocks_.empty() ? nullptr : blocks_.front().plan.get(); }
  void record_in_report(CallId id) const noexcept {
    record(id, plan(), *this ? Strategy::pack : Strategy::forward, "model", 0);
  }

 private:
  /// Stages blocks in device memory, all in one staging buffer. Returns false if there are none, or if failed_ is set.
  template <class CountOf, class DisplacementOf>
  bool prepare_device(CallKind kind, const void* base, CountOf count, DisplacementOf displacement, MPI_Datatype type,
                      const std::vector<int>& ranks, MPI_Comm comm) {
    TypeEntry* entry = find_or_add_type(type);
    if (!entry || entry->decoded_state() == TypeEntry::State::opaque ||
        entry->decoded_state() == TypeEntry::State::empty)
      return false;
    std::vector<BufferLocation> places(ranks.size());
    bool any = false, all_alike = true;
    std::int64_t total = 0;
    blocks_.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Block& block = blocks_[i];
      if (count(i) < 0) return false;
      block.user = const_cast<char*>(static_cast<const char*>(base)) + displacement(i) * entry->extent();
      block.live = ranks[i] != MPI_PROC_NULL && count(i) > 0;
      if (block.live) places[i] = locate_buffer(block.user, count(i), entry);
      any = any || places[i].needs_device;
      if (block.live && !places[i].needs_device) all_alike = false;
      if (__builtin_mul_overflow(std::int64_t{count(i)}, entry->size(), &block.bytes)) return false;
      block.at = total;
      total += block.bytes;
    }
    if (!any || (gpu_aware() && all_alike && entry->decoded_state() == TypeEntry::State::contiguous)) return false;
    comm_ = comm;
    failed_ = true;  // until everything has succeeded
    const std::int64_t unit = entry->leaf_size() != 0 ? entry->leaf_size() : 1;
    type_ = entry->leaf_size() != 0 ? entry->leaf() : MPI_BYTE;
    for (Block& block : blocks_) {
      if (block.bytes / unit > largest_count<Count> || block.at / unit > std::numeric_limits<Displacement>::max()) {
        report_transfer_failure({"its counts do not fit this call; the MPI_Count form (_c) takes them"});
        return false;
      }
      counts_.push_back(static_cast<Count>(block.bytes / unit));
      displacements_.push_back(static_cast<Displacement>(block.at / unit));
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      if (!block.live) continue;
      // A block in host memory among blocks in device memory is moved by the CPU.
      if (!places[i].needs_device) places[i].memory.kind = cuda::MemoryKind::mixed;
      if (!places[i].layout) places[i].layout = entry->layout(count(i));
      if (!staging_buffer_ && places[i].needs_device) {
        const Result<cuda::DevicePtr> device = cuda::Device::of(places[i].memory);
        staging_buffer_ = StagingBuffer::make(device ? *device : nullptr, total, gpu_aware() && all_alike);
      }
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      if (!block.live) continue;
      const TransferPurpose purpose{in_exchange(kind), runtime().distance(comm, ranks[i])};
      Result<StagingPtr> staging = staging_buffer_ && places[i].layout
                                       ? Staging::make(places[i], block.user, comm, purpose, staging_buffer_, block.at)
                                       : Error{"no memory for its blocks"};
      if (!staging) {
        report_transfer_failure(staging.error());
        return false;
      }
      block.staging = std::move(*staging);
    }
    failed_ = false;
    return true;
  }

  struct Block {
    PlanRef plan;
    const Packer* packer = nullptr;
    char* user = nullptr;
    std::int64_t bytes = 0;
    std::int64_t at = 0;  ///< offset in the buffer
    bool live = false;
    StagingPtr staging;  ///< set for device memory
  };
  std::vector<Block> blocks_;
  std::vector<Count> counts_;
  std::vector<Displacement> displacements_;
  BufferLease lease_;
  std::shared_ptr<StagingBuffer> staging_buffer_;
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool failed_ = false;
};

}  // namespace bestride::inline interpose
