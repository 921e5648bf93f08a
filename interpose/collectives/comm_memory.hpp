// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommMemory: what the members of a communicator on one node share. CommPart: its memory for one kind of call.
//
// A part that was used before costs next to nothing, so it is given at once. A new one takes as long as many short
// calls, so rank 0 gives it when the communicator has made enough calls to pay for it: first a small one, then a full
// one. The calls of communicators that were freed without a part also pay for a small one, because later ones use it
// again.
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "base/not_cancelled.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/collectives/node_memory.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {

class CommMemory {
 public:
  /// `node` lives until the process ends. `limit`: of a communicator's shared memory, in bytes.
  CommMemory(NodeMemory& node, WindowMember member, std::int64_t limit) noexcept
      : node_(node), member_(member), limit_(limit) {}
  /// Makes the object for one communicator. May throw std::bad_alloc.
  static std::shared_ptr<CommMemory> make(const Job& job, const CommEntry& entry) {
    return std::make_shared<CommMemory>(*job.node_memory, WindowMember{entry.size(), entry.rank()},
                                        job.settings.window_limit);
  }
  CommMemory(const CommMemory&) = delete;
  CommMemory& operator=(const CommMemory&) = delete;
  ~CommMemory() {
    if (shared_) record().departed.fetch_add(1, std::memory_order_release);
    if (member_.rank == 0 && index_ >= 0 && !retired_) node_.put_back(index_, shared_ ? member_.ranks : 0);
  }

  /// On rank 0: takes a record. Returns 1 + its index; 0: none is left, or on other ranks.
  int take_record() noexcept {
    if (member_.rank == 0) index_ = node_.take();
    return index_ + 1;
  }
  /// `agreed`: what take_record() has returned on rank 0. Called once, before the memory is used.
  void set_record(int agreed) noexcept {
    index_ = agreed - 1;
    shared_ = agreed > 0;
  }
  int index() const noexcept { return index_; }
  /// The record is not used again: its tags may be those of messages that are under way.
  void retire() noexcept { retired_ = true; }
  /// A pair of tags (MpiTransport) that no other communicator uses. `kind`: nonblocking ones.
  int tag_pair(const Job& job, PartKind kind) const noexcept {
    return job.first_record_tag_pair + 2 * index_ + (kind == PartKind::nonblocking_neighbors);
  }

  WindowMember member() const noexcept { return member_; }
  NodeMemory& node() const noexcept { return node_; }
  /// The communicator is freed and has got no memory for these calls.
  void add_left_calls(const Usage& calls) const noexcept {
    if (member_.rank == 0) node_.add_left_calls(calls.sum);
  }
  CommRecord& record() const noexcept { return node_.at(index_); }
  PartOffer& offer(PartKind kind) const noexcept { return record().offers[static_cast<std::size_t>(kind)]; }
  /// Rank 0 has declined only because it has no memory.
  bool lacks_memory(PartKind kind) const noexcept { return offer(kind).lacking.load(std::memory_order_relaxed) != 0; }
  Part give(std::int64_t bytes, PartPool::From from, bool limited) const noexcept {
    return node_.give(index_, bytes, from, limited ? most_limits * limit_ : std::numeric_limits<std::int64_t>::max());
  }

 private:
  /// The communicators of which a rank is rank 0 get no more full parts if they have this multiple of the limit of one.
  static constexpr std::int64_t most_limits = 4;
  NodeMemory& node_;
  const WindowMember member_;
  const std::int64_t limit_;
  int index_ = -1;
  bool shared_ = false;  ///< the other members have the record, too
  bool retired_ = false;
};

/// New memory that rank 0 may give.
enum class NewMemory { none, small, full };

/// When the members ask for memory, and what for. They count calls alike; only rank 0's usage counts.
class AskingForMemory {
 public:
  /// `always`: the third call asks for memory of the full size. `calls_before`: how many calls the communicator has
  /// made.
  AskingForMemory(bool always, int calls_before) noexcept
      : always_(always), calls_(calls_before), next_(calls_before + (always ? 3 : 1)) {
    usage_.sum = calls_before;
  }
  /// The next call asks. The same on all members.
  bool asks_next() const noexcept { return calls_ + 1 >= next_; }
  /// Counts a call.
  void count(std::int64_t bytes) noexcept {
    usage_.add(bytes);
    ++calls_;
  }
  /// Counts a call. True, on all members: it asks.
  bool due(std::int64_t bytes) noexcept {
    const bool asks = asks_next();
    count(bytes);
    if (asks) next_ = calls_ * (calls_ < Usage::small_pays ? 4 : 2);
    return asks;
  }
  const Usage& usage() const noexcept { return usage_; }
  NewMemory wanted() const noexcept {
    return always_ || usage_.sum >= Usage::full_pays ? NewMemory::full
           : usage_.sum >= Usage::small_pays         ? NewMemory::small
                                                     : NewMemory::none;
  }

 private:
  const bool always_;
  std::int64_t calls_, next_;
  Usage usage_;
};

/// Says once that rank 0 has no record, so the collectives of a communicator are left to the MPI library.
void report_no_record() noexcept;

/// Says once that the ranks of a node share no memory, so their collectives are left to the MPI library.
void report_no_memory() noexcept;

/// Calls step() until it returns true, in a call in which the members may wait for each other. Like a rank of MPICH,
/// this one yields only if the others may need its processor.
template <class Step>
void wait_for_members(Step step) noexcept {
  if (step()) return;
  const NotCancelled not_cancelled;
  const unsigned period = window_count.load(std::memory_order_relaxed) > 0 ? 16 : 512;
  const bool yields = yields_when_idle() || (job() && job()->crowded);
  for (unsigned check = 1; !step(); ++check) {
    if (check % period == 0) let_others_progress();
    if (yields && check % checks_before_sleep == 0)
      sched_yield();
    else
      relax_processor();
  }
}

/// `Shape`: layout of a View; it has slot_bytes, bytes() and clear().
template <class View, class Shape>
class CommPart {
 public:
  CommPart(std::shared_ptr<CommMemory> memory, PartKind kind) noexcept
      : memory_(std::move(memory)), offer_(memory_->offer(kind)), set_up_(offer_, memory_->member()) {}
  CommPart(const CommPart&) = delete;
  CommPart& operator=(const CommPart&) = delete;

  View* view() const noexcept { return view_.get(); }
  /// True if the members ask no more: there is the memory of shape `full`, or there will never be more. The same on
  /// all.
  bool settled(const Shape& full) const noexcept {
    return set_up_.closed() || (view_ && slot_bytes_ >= full.slot_bytes);
  }
  /// All members ask rank 0 for memory, together.
  void ask() noexcept { set_up_.ask(); }
  /// Continues ask() without waiting; calls no MPI function. True: the question is answered; view() may have changed.
  /// `full`: the shape of the largest memory; the view may get one with smaller slots. `wanted`: what rank 0 gives; not
  /// used on other ranks. make(memory, shape) returns std::unique_ptr<View> and does not throw.
  template <class Make>
  bool step(const Shape& full, NewMemory wanted, Make make) noexcept {
    Shape shape = full;
    return set_up_.step([&](std::int64_t* slot_bytes) { return give(full, wanted, slot_bytes); },
                        [&](const WindowKey& key) { return memory_->node().find(key); },
                        [&](std::byte* data, std::int64_t slot_bytes) {
                          shape.slot_bytes = slot_bytes;
                          next_ = make(data, shape);
                          next_slot_bytes_ = slot_bytes;
                          return next_ != nullptr;
                        },
                        [&] { next_.reset(); }) &&
           take_over();
  }
  bool given() const noexcept { return set_up_.given(); }

 private:
  bool take_over() noexcept {
    if (set_up_.given()) {
      view_ = std::move(next_);
      slot_bytes_ = next_slot_bytes_;
    }
    return true;
  }
  Part give(const Shape& full, NewMemory wanted, std::int64_t* slot_bytes) const noexcept {
    Shape small = full;
    small.slot_bytes = std::min<std::int64_t>(full.slot_bytes, 4096);
    // Unless a part is found below.
    offer_.lacking.store(wanted != NewMemory::none && !view_, std::memory_order_relaxed);
    for (const Shape* const shape : {&std::as_const(full), &std::as_const(small)})
      for (const auto from : {PartPool::From::used, PartPool::From::any}) {
        const bool is_small = shape == &small;
        if (is_small && view_) continue;
        if (from == PartPool::From::any && wanted != NewMemory::full &&
            (!is_small || (wanted == NewMemory::none && !memory_->node().pay(Usage::small_pays))))
          continue;
        const Part part = memory_->give(static_cast<std::int64_t>(shape->bytes()), from, !is_small);
        if (!part.data) continue;
        if (part.written > 0) shape->clear(part.data);
        *slot_bytes = shape->slot_bytes;
        offer_.lacking.store(0, std::memory_order_relaxed);
        return part;
      }
    return {};
  }

  const std::shared_ptr<CommMemory> memory_;
  PartOffer& offer_;
  PartSetUp set_up_;
  std::unique_ptr<View> view_, next_;
  std::int64_t slot_bytes_ = 0, next_slot_bytes_ = 0;
};

}  // namespace bestride::inline interpose
