// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creation of the memory of Rounds by ranks that may arrive at different times, without messages: through a
// WindowOffer in memory that they share already.
#include <atomic>
#include <memory>

#include "collectives/core/task.hpp"
#include "collectives/core/window.hpp"
#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

/// In shared memory, zero before the first use. Written by one leading rank, and answered by the others.
struct alignas(64) WindowOffer {
  enum State : int { none, offered, accepted, withdrawn };
  std::atomic<int> state;
  std::atomic<int> answers, refusals;
  std::atomic<int> left;  ///< ranks that do not read it any more
  WindowKey key;
};
static_assert(sizeof(WindowOffer) == 64 && std::atomic<int>::is_always_lock_free);

/// `window` and `rounds` are set on all ranks, or on none. Rank 0 leads. `can_create` false: as if there were no
/// memory.
Task set_up_rounds(WindowOffer& offer, RoundsShape shape, int rank, bool can_create, Window& window,
                   std::unique_ptr<Rounds>& rounds);

}  // namespace bestride::inline collectives
