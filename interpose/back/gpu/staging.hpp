// SPDX-License-Identifier: Apache-2.0
#pragma once
// Staging: one message's device memory and the contiguous buffer that MPI is handed in its place.
//
// The buffer is page-locked host memory, which kernels and copy engines reach; where there is none left, ordinary host memory, filled by
// copies block by block; and device memory for a GPU-aware MPI.
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interpose/back/buffer.hpp"
#include "interpose/back/gpu/place.hpp"
#include "interpose/back/gpu/way.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/plan.hpp"

namespace bestride {

/// Contiguous bytes that MPI is handed; may hold several messages.
class Room {
 public:
  /// On `device` (null: none reaches the user's memory as a whole), or ordinary memory where that has no more. `aware`: device memory is
  /// wanted. nullptr: no memory at all.
  static std::shared_ptr<Room> make(const cuda::DevicePtr& device, std::int64_t bytes, bool aware) noexcept;

  /// Memory of the application's that kernels reach.
  static std::shared_ptr<Room> of(std::byte* theirs, bool on_device) noexcept;

  std::byte* data() const noexcept { return theirs_ ? theirs_ : buffer_ ? static_cast<std::byte*>(buffer_.data()) : lease_.data(); }
  /// Kernels reach it.
  bool pinned() const noexcept { return buffer_ || theirs_; }
  /// MPI is handed device memory.
  bool on_device() const noexcept { return on_device_; }

 private:
  cuda::Buffer buffer_;
  Lease lease_;
  std::byte* theirs_ = nullptr;
  bool on_device_ = false;
};

/// Shared by the side of the call and the work that is under way. One thread at a time, but for failed().
class Staging {
 public:
  /// `place`: by_gpu, of a known layout. `room` and `at`: where the packed bytes stand; null: a room of its own. `comm`: whose errors
  /// these are. An Error: nothing reaches that memory.
  static Result<std::shared_ptr<Staging>> make(const Place& place, void* user, MPI_Comm comm, Errand errand, std::shared_ptr<Room> room = nullptr,
                                               std::int64_t at = 0) noexcept;
  /// The same in host memory of its own, also for a GPU-aware MPI. For what lies on no one device too: block by block.
  static Result<std::shared_ptr<Staging>> make_on_host(const Place& place, void* user, MPI_Comm comm, CallKind kind) noexcept;

  std::byte* packed() const noexcept { return packed_; }
  std::int64_t size() const noexcept { return place_.layout->size(); }
  const Layout& layout() const noexcept { return *place_.layout; }
  const LayoutPtr& layout_pointer() const noexcept { return place_.layout; }
  const cuda::Memory& memory() const noexcept { return place_.memory; }
  void* user() const noexcept { return user_; }
  /// As kernels see it.
  cuda::Address user_address() const noexcept { return reinterpret_cast<cuda::Address>(user_) + static_cast<cuda::Address>(place_.memory.to_device); }
  const cuda::DevicePtr& device() const noexcept { return device_; }
  const cuda::PlanPtr& plan() const noexcept { return plan_; }
  const Room& room() const noexcept { return *room_; }
  /// As decided when this was made; means something only where fast().
  const Way& way() const noexcept { return way_; }
  /// "staged", ... or "blocks": for the report.
  const char* way_text() const noexcept { return fast() ? cuda::name(way_.way) : "blocks"; }
  MPI_Comm comm() const noexcept { return comm_; }
  /// Kernels and copy engines can do it; else block by block.
  bool fast() const noexcept { return plan_ && room_->pinned() && device_->alive(); }

  /// The last move did not get through.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  void set_failed(bool failed) noexcept { failed_.store(failed, std::memory_order_release); }

  /// Private in all but name: make_shared needs it.
  Staging(const Place& place, void* user, MPI_Comm comm) noexcept : place_(place), user_(user), comm_(comm) {}

 private:
  Place place_;
  void* user_;
  MPI_Comm comm_;
  cuda::DevicePtr device_;
  cuda::PlanPtr plan_;
  std::shared_ptr<Room> room_;
  Way way_;
  std::byte* packed_ = nullptr;
  std::atomic<bool> failed_{false};
};
using StagingPtr = std::shared_ptr<Staging>;

/// Packed bytes [first, last), block by block, by plain copies: for when kernels or page-locked memory are not to be had, and for memory of
/// several kinds. Waits. Exact in both directions: gaps are not touched.
Result<cuda::Done> move_blockwise(const Staging& staging, cuda::Direction direction, std::int64_t first, std::int64_t last) noexcept;

}  // namespace bestride
