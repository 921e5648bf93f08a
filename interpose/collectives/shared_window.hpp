// SPDX-License-Identifier: Apache-2.0
#pragma once
// SharedWindow: memory that all members of a communicator on one node share. What all such communicators of a process
// share is limited.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "collectives/core/window.hpp"

namespace bestride::inline interpose {

class SharedWindow {
 public:
  /// Collective over the members of `comm`. `leads`: true on rank 0. The memory is zeroed; data() is nullptr on all
  /// members if it is missing on one.
  SharedWindow(MPI_Comm comm, bool leads, std::int64_t bytes) noexcept;
  SharedWindow(SharedWindow&& other) noexcept
      : window_(std::move(other.window_)), counted_(std::exchange(other.counted_, 0)) {}
  SharedWindow& operator=(SharedWindow&&) = delete;
  ~SharedWindow();
  std::byte* data() const noexcept { return window_.data(); }

 private:
  Window window_;
  std::int64_t counted_ = 0;  ///< bytes
};

/// Says once that the ranks of a node share no memory, so their collectives are left to the MPI library.
void report_no_memory() noexcept;

/// Collective. True on all members if `good` on all of them; if not, it is reported once that they share no memory.
bool all_share_memory(MPI_Comm comm, bool good) noexcept;

}  // namespace bestride::inline interpose
