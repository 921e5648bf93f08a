// SPDX-License-Identifier: Apache-2.0
#pragma once
// WindowOffers: small memory that all ranks of this node share from MPI_Init on. Through it the members of a
// communicator create larger memory when they first need it, without messages (collectives/one_node/setup.hpp).
#include <array>
#include <mutex>

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
};

}  // namespace bestride::inline interpose
