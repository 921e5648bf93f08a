// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rounds: collectives of ranks that all share one memory, as a sequence of numbered rounds.
//
// Each rank has a ring of slots that only it fills. In a round a rank may fill its slot and publish it, reads slots of
// other ranks, and ends the round. All ranks compute the same number of rounds from equal arguments, so nothing has a
// header. Round numbers continue from one collective to the next. A slot is reused once all ranks have ended the round
// that filled it, so a collective needs no barrier at its end, and a rank may be ahead of the others by as many rounds
// as there are slots.
//
// Each counter has one writer and only grows. A rank that has waited for a long time sleeps on a futex of the rank that
// it waits for. Measured with 4 ranks on 2 cores, alltoall of 64 KiB: 37 to 106 us, with sched_yield() instead 2.1 to
// 2.8 ms.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/core/slot_stores.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/bell.hpp"

namespace bestride::inline collectives {

/// Layout of the memory; the same on all ranks.
struct RoundsShape {
  static constexpr int slots = 4;
  static constexpr int max_ranks = 128;
  int ranks = 1;
  std::int64_t slot_bytes = 0;  ///< a multiple of 4096

  /// Slots of at most 128 KiB, as large as `limit` bytes allow, but at least 4096 bytes. Measured with 2 ranks, 1 MiB:
  /// alltoall 124, 89, 79 and 54 us with slots of 16, 32, 64 and 128 KiB, allreduce 209, 203, 191 and 163 us.
  static RoundsShape within(int ranks, std::int64_t limit) noexcept;
  std::size_t bytes() const noexcept;
  /// Bytes for each rank if a slot is divided among the ranks; a multiple of 16.
  std::int64_t part_bytes() const noexcept { return slot_bytes / ranks / 16 * 16; }
};

/// The view of one rank. Used by one thread at a time.
class Rounds {
 public:
  using Number = std::uint64_t;

  /// `memory`: shape.bytes() bytes, shared, zero before the first use, aligned to 128; it outlives this object. May
  /// throw std::bad_alloc.
  Rounds(std::byte* memory, const RoundsShape& shape, int rank);

  int ranks() const noexcept { return shape_.ranks; }
  int rank() const noexcept { return rank_; }
  std::int64_t slot_bytes() const noexcept { return shape_.slot_bytes; }
  std::int64_t part_bytes() const noexcept { return shape_.part_bytes(); }

  /// The next round. All ranks begin the same rounds.
  Number begin() noexcept { return ++round_; }
  bool is_vacant(Number round) noexcept;
  bool is_published(Number round, int rank) noexcept {
    if (line(rank).published.load(std::memory_order_acquire) >= round) return true;
    blocked_on_ = rank;
    return false;
  }
  /// co_await vacant(round): until this rank's slot may be filled.
  auto vacant(Number round) noexcept {
    return until([this, round] { return is_vacant(round); });
  }
  /// This rank's slot, slot_bytes() long.
  std::byte* own(Number round) const noexcept { return slot(rank_, round); }
  /// Writes bytes `range` of `from` to this rank's slot, `at` bytes from its beginning.
  void fill(Number round, std::int64_t at, const Operand& from, Range range) noexcept {
    stores_.fill(own(round) + at, from, range);
  }
  /// Where to compute a part of at most strip_bytes of this rank's slot; nullptr: elsewhere. keep() then writes it
  /// there.
  std::byte* place_in(Number round, Range part) const noexcept {
    return stores_.place(own(round) + part.first, part.length());
  }
  void keep(Number round, Range part, const std::byte* data) noexcept {
    stores_.keep(own(round) + part.first, data, part.length());
  }
  void publish(Number round) noexcept;
  /// co_await published(round, rank): until that rank's slot may be read. It stays valid until end().
  auto published(Number round, int rank) noexcept {
    return until([this, round, rank] { return is_published(round, rank); });
  }
  /// co_await all_published(round): until the slots of all other ranks may be read.
  auto all_published(Number round) noexcept {
    return until([this, round, other = 0]() mutable {
      for (; other < shape_.ranks; ++other)
        if (other != rank_ && !is_published(round, other)) return false;
      return true;
    });
  }
  const std::byte* of(Number round, int rank) const noexcept { return slot(rank, round); }
  /// This rank reads nothing more of this round and of those before it.
  void end(Number round) noexcept;

  /// strip_bytes each, for partial results; one more than the levels of a tree over the ranks (ReductionTree).
  static constexpr std::int64_t strip_bytes = SlotStores::strip_bytes;
  std::byte* scratch(int level) noexcept { return scratch_.get() + level * strip_bytes; }

  /// A sleep is prepared, then the condition is checked once more, then it is started or cancelled. So no wake-up is
  /// lost.
  struct Sleep {
    int rank;             ///< that is waited for
    std::uint32_t rings;  ///< of its bell, before the check
  };
  Sleep prepare_sleep() noexcept;
  /// True if the rank that is waited for is still the one that the sleep was prepared for.
  bool still(const Sleep& sleep) const noexcept { return sleep.rank == blocked_on_; }
  void cancel(const Sleep& sleep) noexcept;
  /// Until that rank publishes or ends a round, or for `nanoseconds`, or a signal.
  void start(const Sleep& sleep, long nanoseconds) noexcept;

 private:
  /// Two counters, each on a line of its own, because different ranks wait for them. 128 bytes, because processors
  /// fetch lines in pairs.
  struct alignas(128) Line {
    std::atomic<Number> published;
    Bell bell;
    alignas(128) std::atomic<Number> ended;
  };
  static_assert(std::atomic<Number>::is_always_lock_free && sizeof(Line) == 256);

  Line& line(int rank) const noexcept { return reinterpret_cast<Line*>(memory_)[rank]; }
  std::byte* slot(int rank, Number round) const noexcept {
    return slots_ + (static_cast<std::int64_t>(round % RoundsShape::slots) * shape_.ranks + rank) * shape_.slot_bytes;
  }

  friend struct RoundsShape;
  std::byte* const memory_;
  std::byte* const slots_;
  const RoundsShape shape_;
  const int rank_;
  SlotStores stores_;
  Number round_ = 0;
  Number all_ended_ = 0;  ///< all ranks are known to have ended this round
  int blocked_on_ = 0;    ///< the rank that the last failed check waited for
  std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace bestride::inline collectives
