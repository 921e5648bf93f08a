// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creation of memory that ranks share, by ranks that may arrive at different times, without messages: through a
// WindowOffer in memory that they share already.
#include <atomic>
#include <cstddef>
#include <memory>

#include "collectives/core/task.hpp"
#include "collectives/core/window.hpp"

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

/// What this rank sees in the memory, such as Rounds or Edges; nullptr: there is no memory for it.
template <class View, class... Arguments>
std::unique_ptr<View> view_of(Arguments&&... arguments) noexcept {
  try {
    return std::make_unique<View>(std::forward<Arguments>(arguments)...);
  } catch (...) {
    return nullptr;
  }
}

/// The members of a window: `rank` 0 of `ranks` leads.
struct WindowMember {
  int ranks, rank;
};

/// `window` has `bytes` bytes. `view` = make(memory), a std::unique_ptr; make() does not throw. Both are set on all
/// ranks, or on none. `can_create` false: as if there were no memory.
template <class View, class Make>
Task set_up_window(WindowOffer& offer, WindowMember member, std::size_t bytes, bool can_create, Window& window,
                   std::unique_ptr<View>& view, Make make) {
  const bool leads = member.rank == 0;
  if (leads) {
    if (can_create) window = Window::create(bytes);
    offer.key = window.key();
    offer.state.store(WindowOffer::offered, std::memory_order_release);
  } else {
    co_await until([&] { return offer.state.load(std::memory_order_acquire) != WindowOffer::none; });
    window = Window::open(offer.key);
  }
  if (window.data()) view = make(window.data());
  if (!view) offer.refusals.fetch_add(1, std::memory_order_relaxed);
  if (leads) {
    co_await until([&] { return offer.answers.load(std::memory_order_acquire) == member.ranks - 1; });
    offer.state.store(offer.refusals.load(std::memory_order_relaxed) ? WindowOffer::withdrawn : WindowOffer::accepted,
                      std::memory_order_release);
    window.close_descriptor();
  } else {
    offer.answers.fetch_add(1, std::memory_order_acq_rel);
    co_await until([&] { return offer.state.load(std::memory_order_acquire) != WindowOffer::offered; });
  }
  if (offer.state.load(std::memory_order_acquire) == WindowOffer::withdrawn) {
    view.reset();
    window = Window();
  }
  offer.left.fetch_add(1, std::memory_order_release);
}

}  // namespace bestride::inline collectives
