// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rounds: collectives of ranks that all share one memory, as a sequence of numbered rounds.
//
// Each rank has a ring of slots that only it fills. In a round a rank may fill its slot and publish it, reads slots of
// other ranks, and ends the round. A slot is reused once all ranks have ended the round that filled it, so a collective
// needs no barrier at its end, and a rank may be ahead of the others by as many rounds as there are slots.
//
// Rounds are counted within a call, and calls alike on all ranks, including those that a rank leaves to the MPI
// library. With a slot a rank publishes which collective it carries out and the bytes of its message. A reader goes by
// these, never by its own arguments: it waits for the rounds that the writer has announced, and for at least one. So if
// the arguments of ranks don't match, which is an error of the program, no rank waits for a round that never comes, and
// the next call begins in step. A reader that finds another collective, or that the writer has left the call, leaves
// it, too: all ranks that depend on each other end up in the MPI library, which does what it does without this.
//
// Each counter has one writer and only grows. A rank that sleeps while it waits does so on a futex of the rank that it
// waits for.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/core/slot_stores.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/bell.hpp"
#include "collectives/one_node/rank_processors.hpp"

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
  /// Zeroes what must be zero before the first use.
  void clear(std::byte* memory) const noexcept;
  /// Bytes for each rank if a slot is divided among the ranks; a multiple of 16.
  std::int64_t part_bytes() const noexcept { return slot_bytes / ranks / 16 * 16; }
  /// Bytes from one slot to the next: after its data, the bytes of the message to each rank.
  std::int64_t slot_stride() const noexcept { return slot_bytes + (8 * ranks + 127) / 128 * 128; }
};

/// What a rank carries out in a round.
enum class RoundKind : std::uint8_t {
  vote = 1,
  bcast,
  allgather,
  gather,
  scatter,
  alltoall,
  sizes,
  allreduce,
  reduce,
  reduce_scatter,
};

/// How a call has ended on this rank, from good to bad.
enum class CallOutcome : std::uint8_t {
  complete,
  differs,    ///< a message is shorter than expected, in a collective where MPICH 4.0.2 reports that
  truncated,  ///< a message is longer than the memory for it; what fits was moved
  left,       ///< another rank has not taken part; this one must leave the call to the MPI library
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

  /// Begins the next call, unless one has begun. All ranks begin the same calls.
  void open() noexcept {
    if (open_) return;
    open_ = true;
    has_published_ = false;
    outcome_ = CallOutcome::complete;
    round_ = last_of(round_) + 1;
  }
  /// Ends the call, if one has begun: this rank reads nothing more of it.
  CallOutcome close() noexcept;
  /// Ends the call, or the next one if none has begun, as one in which this rank publishes nothing more.
  void leave() noexcept;

  /// The next round of this call. `kind`: what this rank carries out.
  Number begin(RoundKind kind) noexcept {
    kind_ = kind;
    return ++round_;
  }
  bool is_vacant(Number round) noexcept;
  bool is_published(Number round, int rank) noexcept {
    if (reached(line(rank).published.load(std::memory_order_acquire), round)) return true;
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
  /// `bytes`: of the whole message to each other rank.
  void publish(Number round, std::int64_t bytes) noexcept { publish_header(round, bytes); }
  /// The same with `messages.bytes(r)` bytes to rank r.
  void publish(Number round, const Operands& messages) noexcept;
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
  /// After published(round, rank): the bytes of the whole message from that rank to this one. -1: it carries out
  /// another collective or has left the call, and the outcome is `left`.
  std::int64_t told(Number round, int rank) noexcept;
  /// This rank reads nothing more of this round and of those before it. Not needed for the last round of a call.
  void end(Number round) noexcept;
  /// This rank reads nothing more of the rounds of this call so far. Needed between two collectives in one call.
  void end_so_far() noexcept { end(round_); }

  void note(CallOutcome outcome) noexcept { outcome_ = std::max(outcome_, outcome); }
  CallOutcome outcome() const noexcept { return outcome_; }
  /// Notes whether a message of `bytes` bytes fits into `room` bytes. Returns the bytes to be moved.
  std::int64_t fit(std::int64_t bytes, std::int64_t room) noexcept {
    if (bytes <= room) return bytes;
    note(CallOutcome::truncated);
    return room;
  }

  RankProcessors& processors() noexcept { return processors_; }

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
  using Header = std::uint64_t;
  /// Two counters, each on a line of its own, because different ranks wait for them. 128 bytes, because processors
  /// fetch lines in pairs.
  struct alignas(128) Line {
    std::atomic<Number> published;
    Bell bell;
    std::atomic<Header> headers[RoundsShape::slots];  ///< of the slots
    alignas(128) std::atomic<Number> ended;
  };
  static_assert(std::atomic<Number>::is_always_lock_free && sizeof(Line) == 256);

  /// A number is that of the call and, in the lower bits, that of the round in it, from 1 on.
  static constexpr int round_bits = 28;
  static constexpr Number last_of(Number round) noexcept { return round | ((Number{1} << round_bits) - 1); }
  /// Numbers may wrap.
  static bool reached(Number number, Number wanted) noexcept { return static_cast<std::int64_t>(number - wanted) >= 0; }
  /// The lower bits: bytes of a message, or that they differ. The upper bits tell one round from another.
  static constexpr int bytes_bits = 40;
  static constexpr std::int64_t differing_bytes = (std::int64_t{1} << bytes_bits) - 1;
  static Header mark_of(Number round, RoundKind kind) noexcept {
    const Number mixed = (round ^ (round >> round_bits << 8)) << 4 | static_cast<Number>(kind);
    return mixed << bytes_bits;
  }

  Line& line(int rank) const noexcept { return reinterpret_cast<Line*>(memory_)[rank]; }
  /// Consecutive rounds, and the first rounds of consecutive calls, have different slots.
  static int index_of(Number round) noexcept {
    return static_cast<int>((round + (round >> round_bits)) % RoundsShape::slots);
  }
  std::byte* slot(int rank, Number round) const noexcept {
    return slots_ + (std::int64_t{index_of(round)} * shape_.ranks + rank) * shape_.slot_stride();
  }
  /// Bytes of the message to each rank, if they differ.
  std::int64_t* lengths(int rank, Number round) const noexcept {
    return reinterpret_cast<std::int64_t*>(slot(rank, round) + shape_.slot_bytes);
  }
  void publish_header(Number round, std::int64_t bytes) noexcept;

  friend struct RoundsShape;
  std::byte* const memory_;
  std::byte* const slots_;
  const RoundsShape shape_;
  const int rank_;
  RankProcessors processors_;
  SlotStores stores_;
  Number round_ = 0;
  RoundKind kind_{};  ///< of round_
  bool open_ = false;
  bool has_published_ = false;  ///< in this call
  CallOutcome outcome_ = CallOutcome::complete;
  Number filled_[RoundsShape::slots] = {};  ///< the last round in which this rank has published each slot
  Number all_ended_ = 0;                    ///< all ranks are known to have ended this round
  int blocked_on_ = 0;                      ///< the rank that the last failed check waited for
  std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace bestride::inline collectives
