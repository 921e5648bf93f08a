// SPDX-License-Identifier: Apache-2.0
#pragma once
// The members of a communicator get memory that they share, without messages, although they may arrive at different
// times: through a PartOffer in memory that they share already.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "collectives/core/window.hpp"
#include "collectives/one_node/part_pool.hpp"

namespace bestride::inline collectives {

/// In shared memory, zero before the first use. Written by one leading rank, and answered by the others.
struct alignas(64) PartOffer {
  enum Phase : int { none, offered, accepted, declined };
  static constexpr int most_parts = 2;  ///< one after the other
  std::atomic<int> state;               ///< 4 * the number of the question + its Phase; only grows
  std::atomic<int> answers, refusals;
  std::atomic<int> lacking;  ///< 1: the leading rank would have given a part, but has no memory for it; for the report
  std::int32_t first_page;   ///< of the part, in its window
  WindowKey key;
  std::int64_t slot_bytes;  ///< of the view that uses the part
};
static_assert(sizeof(PartOffer) == 64 && std::atomic<int>::is_always_lock_free);

/// What this rank sees in the memory, such as Rounds or Edges; nullptr: there is no memory for it.
template <class View, class... Arguments>
std::unique_ptr<View> view_of(Arguments&&... arguments) noexcept {
  try {
    return std::make_unique<View>(std::forward<Arguments>(arguments)...);
  } catch (...) {
    return nullptr;
  }
}

/// The members of a communicator: `rank` 0 of `ranks` leads.
struct WindowMember {
  int ranks, rank;
};

/// One member's side of an offer. All members ask the same questions in the same order. The leading rank alone decides
/// whether there is a part, because only what it knows counts. A part is used by all members or by none.
class PartSetUp {
 public:
  PartSetUp(PartOffer& offer, WindowMember member) noexcept : offer_(offer), member_(member) {}
  PartSetUp(const PartSetUp&) = delete;
  PartSetUp& operator=(const PartSetUp&) = delete;

  /// Begins the next question.
  void ask() noexcept {
    ++question_;
    stage_ = Stage::begun;
  }
  /// Continues it without waiting. True: it is answered. Called on until then, with the same functions:
  /// - give(std::int64_t* slot_bytes) on the leading rank: returns the Part, zero where the view needs it, or no part;
  /// - find(const WindowKey&) on the others: returns the beginning of the window, or nullptr;
  /// - see(std::byte* memory, std::int64_t slot_bytes) on all: makes the view. False: it can't be made;
  /// - drop(): that view is not used. The one before it stays.
  /// None of them throws.
  template <class Give, class Find, class See, class Drop>
  bool step(Give give, Find find, See see, Drop drop) noexcept;
  /// True if the last question has given a part to all members.
  bool given() const noexcept { return given_; }
  /// True if no question will give a (further) part.
  bool closed() const noexcept { return parts_ == PartOffer::most_parts || refused_; }

 private:
  enum class Stage { begun, answering };
  int state(PartOffer::Phase phase) const noexcept { return 4 * question_ + phase; }
  bool end(bool given) noexcept {
    given_ = given;
    return true;
  }

  PartOffer& offer_;
  const WindowMember member_;
  int question_ = 0, parts_ = 0;
  Stage stage_ = Stage::begun;
  bool given_ = false, refused_ = false;
};

template <class Give, class Find, class See, class Drop>
bool PartSetUp::step(Give give, Find find, See see, Drop drop) noexcept {
  const bool leads = member_.rank == 0;
  if (stage_ == Stage::begun) {
    std::byte* memory = nullptr;
    if (leads) {
      std::int64_t slot_bytes = 0;
      const Part part = give(&slot_bytes);
      if (!part.data) {
        offer_.state.store(state(PartOffer::declined), std::memory_order_release);
        return end(false);
      }
      memory = part.data;
      offer_.key = part.key;
      offer_.first_page = static_cast<std::int32_t>(part.offset / 4096);
      offer_.slot_bytes = slot_bytes;
      offer_.answers.store(0, std::memory_order_relaxed);
      offer_.refusals.store(0, std::memory_order_relaxed);
    } else {
      const int now = offer_.state.load(std::memory_order_acquire);
      if (now < state(PartOffer::offered)) return false;
      // A later question: this one was declined.
      if (now >= state(PartOffer::declined)) return end(false);
      std::byte* const window = find(offer_.key);
      if (window) memory = window + std::int64_t{offer_.first_page} * 4096;
    }
    ++parts_;
    if (!memory || !see(memory, offer_.slot_bytes)) offer_.refusals.fetch_add(1, std::memory_order_relaxed);
    if (leads)
      offer_.state.store(state(PartOffer::offered), std::memory_order_release);
    else
      offer_.answers.fetch_add(1, std::memory_order_acq_rel);
    stage_ = Stage::answering;
  }
  if (leads) {
    if (offer_.answers.load(std::memory_order_acquire) != member_.ranks - 1) return false;
    const bool all = offer_.refusals.load(std::memory_order_relaxed) == 0;
    offer_.state.store(state(all ? PartOffer::accepted : PartOffer::declined), std::memory_order_release);
    given_ = all;
  } else {
    const int now = offer_.state.load(std::memory_order_acquire);
    if (now < state(PartOffer::accepted)) return false;
    // Another rank may have asked the next question already. It has only if this one gave a part that may grow.
    given_ = now != state(PartOffer::declined);
  }
  refused_ = !given_;
  if (!given_) drop();
  return true;
}

}  // namespace bestride::inline collectives
