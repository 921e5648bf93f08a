// SPDX-License-Identifier: Apache-2.0
#pragma once
// WindowOffers: small memory that all ranks of this node share from MPI_Init on. Through it the members of a
// communicator create larger memory when they first need it, without messages (collectives/one_node/setup.hpp).
// OfferedWindow: such memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "collectives/core/window.hpp"
#include "collectives/one_node/setup.hpp"
#include "model/topology.hpp"

namespace bestride::inline interpose {

class WindowOffers {
 public:
  /// Collective over MPI_COMM_WORLD, whose topology is `world`. False: there is no memory.
  bool join(const Topology& world) noexcept;
  /// Called once, when all ranks have joined.
  void all_have_joined() noexcept { window_.close_descriptor(); }

  /// An unused offer, for a communicator in which this rank is rank 0; -1: all are in use. Thread-safe.
  int take() noexcept;
  /// Gives it back; after the communicator's last operation has ended on this rank. `ranks`: members. Thread-safe.
  void put_back(int index, int ranks) noexcept;
  /// Any rank's offer. Valid until the process ends.
  WindowOffer& at(int index) noexcept { return reinterpret_cast<WindowOffer*>(window_.data())[index]; }

  /// Bytes of all OfferedWindows of this process.
  std::int64_t bytes_in_use() const noexcept { return bytes_in_use_.load(std::memory_order_relaxed); }
  void count_bytes(std::int64_t more) noexcept { bytes_in_use_.fetch_add(more, std::memory_order_relaxed); }

 private:
  static constexpr int per_rank = 64;
  struct Own {
    bool taken = false;
    int ranks = 0;  ///< that have to leave the offer before it can be used again; 0: none
  };
  Window window_;
  int first_ = 0;  ///< index of this rank's first offer
  std::mutex mutex_;
  std::array<Own, per_rank> own_;
  std::atomic<std::int64_t> bytes_in_use_{0};
};

/// The memory of one queue. The members agree on an offer of their rank 0; the first operation creates the memory.
class OfferedWindow {
 public:
  /// `offers` lives until the process ends. `limit`: of a communicator's shared memory, in bytes.
  OfferedWindow(WindowOffers& offers, WindowMember member, std::int64_t bytes, std::int64_t limit) noexcept
      : offers_(offers), member_(member), bytes_(bytes), most_in_use_(most_windows * std::max(limit, bytes)) {}
  OfferedWindow(const OfferedWindow&) = delete;
  OfferedWindow& operator=(const OfferedWindow&) = delete;
  ~OfferedWindow();

  /// On rank 0: takes an offer. Returns 1 + its index; 0: none is left, or on other ranks.
  int take_offer() noexcept;
  /// `agreed`: what take_offer() has returned on rank 0. Called once, before set_up().
  void set_offer(int agreed) noexcept { offer_ = agreed - 1; }
  /// False: too many bytes of other windows are in use on a member. `in_use`: the largest WindowOffers::bytes_in_use().
  bool fits(std::int64_t in_use) const noexcept { return in_use + bytes_ <= most_in_use_; }
  /// As set_up_window(). Calls no MPI function.
  template <class View, class Make>
  Task set_up(std::unique_ptr<View>& view, Make make) {
    co_await set_up_window(offers_.at(offer_), member_, static_cast<std::size_t>(bytes_), may_create(), window_, view,
                           std::move(make));
    if (view) count();
  }

 private:
  /// If windows have more memory than this multiple of the limit of one communicator, no new ones are agreed on. Those
  /// that have been agreed on and not created may exceed it by the same amount.
  static constexpr std::int64_t most_windows = 4;
  bool may_create() const noexcept;
  void count() noexcept;

  WindowOffers& offers_;
  const WindowMember member_;
  const std::int64_t bytes_, most_in_use_;
  int offer_ = -1;
  bool counted_ = false;
  Window window_;
};

}  // namespace bestride::inline interpose
