// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/setup.hpp"

#include <new>
#include <utility>

namespace bestride::inline collectives {

Task set_up_rounds(WindowOffer& offer, RoundsShape shape, int rank, bool can_create, Window& window,
                   std::unique_ptr<Rounds>& rounds) {
  const bool leads = rank == 0;
  if (leads) {
    if (can_create) window = Window::create(shape.bytes());
    offer.key = window.key();
    offer.state.store(WindowOffer::offered, std::memory_order_release);
  } else {
    co_await until([&] { return offer.state.load(std::memory_order_acquire) != WindowOffer::none; });
    window = Window::open(offer.key);
  }
  if (window.data()) rounds.reset(new (std::nothrow) Rounds(window.data(), shape, rank));
  if (!rounds) offer.refusals.fetch_add(1, std::memory_order_relaxed);
  if (leads) {
    co_await until([&] { return offer.answers.load(std::memory_order_acquire) == shape.ranks - 1; });
    offer.state.store(offer.refusals.load(std::memory_order_relaxed) ? WindowOffer::withdrawn : WindowOffer::accepted,
                      std::memory_order_release);
    window.close_descriptor();
  } else {
    offer.answers.fetch_add(1, std::memory_order_acq_rel);
    co_await until([&] { return offer.state.load(std::memory_order_acquire) != WindowOffer::offered; });
  }
  if (offer.state.load(std::memory_order_acquire) == WindowOffer::withdrawn) {
    rounds.reset();
    window = Window();
  }
  offer.left.fetch_add(1, std::memory_order_release);
}

}  // namespace bestride::inline collectives
