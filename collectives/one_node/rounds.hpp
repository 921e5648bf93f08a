// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rounds: collectives of ranks that all share one memory, as a sequence of numbered rounds.
//
// Each rank has a ring of memory that only it fills. In a round a rank may take a slot, as long as its data, from its
// ring, fill and publish it, reads slots of other ranks, and ends the round. A slot's memory is reused once all ranks
// have ended the round that filled it, so a collective needs no barrier at its end, and a rank may be ahead of the
// others by as much as the ring holds: with four slots of the largest size, ranks that were out of step by up to 0.5 ms
// took 1.3 times as long for broadcasts of 8 KiB as with 32.
//
// A slot is announced by an entry, which short data is part of, so that a reader gets both with one line of its cache.
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
#include <cstring>
#include <memory>

#include "collectives/core/slot_stores.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/bell.hpp"
#include "collectives/one_node/rank_processors.hpp"
#include "perfmodel/collective/one_node.hpp"

namespace bestride::inline collectives {

/// Layout of the memory; the same on all ranks.
struct RoundsShape {
  static constexpr int slots = 4;  ///< of the largest size that a ring holds
  static constexpr int max_ranks = most_ranks_on_one_node;
  int ranks = 1;
  std::int64_t slot_bytes = 0;  ///< the largest size; a multiple of 4096

  /// Slots of at most 128 KiB, as large as `limit` bytes allow, but at least 4096 bytes. Measured with 2 ranks, 1 MiB:
  /// alltoall 124, 89, 79 and 54 us with slots of 16, 32, 64 and 128 KiB, allreduce 209, 203, 191 and 163 us.
  static RoundsShape within(int ranks, std::int64_t limit) noexcept;
  std::size_t bytes() const noexcept;
  /// What lies before the rings; a multiple of 4096.
  std::int64_t head_bytes() const noexcept;
  /// Zeroes what must be zero before the first use.
  void clear(std::byte* memory) const noexcept;
  /// Bytes for each rank if a slot is divided among the ranks; a multiple of 16.
  std::int64_t part_bytes() const noexcept { return slot_bytes / ranks / 16 * 16; }
  /// Entries of a rank: the most slots that it may have filled at a time. A power of 2.
  int entries() const noexcept { return slot_bytes > 4096 && ranks <= 16 ? 64 : 16; }
  /// Bytes of a rank's ring: a slot may have after its data the bytes of the message to each rank.
  std::int64_t ring_bytes() const noexcept {
    return near_bytes() + slots * (slot_bytes + (8 * ranks + 127) / 128 * 128);
  }
  /// Bytes at the beginning of a ring that are for short slots, of at most half of this, so that they stay in the
  /// caches. The rest of the ring is for long slots, and for those that find no place at the beginning, because other
  /// ranks are behind. Long ones are better written where no other processor has read lately: with slots of 128 KiB
  /// that were taken again at once, an allgather of 1 MiB took 170 us instead of 102.
  std::int64_t near_bytes() const noexcept { return slot_bytes >= 32 * 1024 ? 32 * 1024 : 0; }
};

/// What a rank carries out in a round.
enum class RoundKind : std::uint8_t {
  vote = 1,
  bcast,
  allgather,
  gather,
  scatter,
  alltoall,
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
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  /// Ends all later calls: if other ranks make more of them, which is an error, none waits for this one.
  ~Rounds();

  int ranks() const noexcept { return shape_.ranks; }
  int rank() const noexcept { return rank_; }
  std::int64_t slot_bytes() const noexcept { return shape_.slot_bytes; }
  std::int64_t part_bytes() const noexcept { return shape_.part_bytes(); }

  /// Begins the next call, unless one has begun. All ranks begin the same calls.
  void open() noexcept {
    if (open_) return;
    open_ = true;
    outcome_ = CallOutcome::complete;
    round_ = last_of(round_) + 1;
  }
  /// Ends the call, if one has begun: this rank reads nothing more of it.
  CallOutcome close() noexcept;
  /// Ends the call, or the next one if none has begun, as one in which this rank publishes nothing more. Without a ring
  /// of the bell: only a call that others carry out has sleepers, and they sleep for a short time.
  void leave() noexcept {
    open();
    round_ = last_of(round_);
    ended_->store(round_, std::memory_order_release);
    open_ = false;
  }

  /// The next round of this call. `kind`: what this rank carries out.
  Number begin(RoundKind kind) noexcept {
    kind_ = kind;
    return ++round_;
  }
  /// Takes a slot of `bytes` <= slot_bytes() bytes for this round, once there is memory; false until then.
  bool take(Number round, std::int64_t bytes) noexcept;
  bool is_published(Number round, int rank) noexcept {
    if (entry(rank, round).number.load(std::memory_order_acquire) == round) return true;
    return has_ended_call(round, rank);
  }
  /// co_await taken(round, bytes): until this rank's slot may be filled.
  auto taken(Number round, std::int64_t bytes) noexcept {
    return until([this, round, bytes] { return take(round, bytes); });
  }
  /// The bytes of a slot with a part for each rank, which is taken next: `stride` bytes from one part to the next, a
  /// multiple of 16, at most part_bytes(). `messages.bytes(r)`: to rank r; any class that has it, such as Operands.
  template <class Messages>
  std::int64_t parts(std::int64_t stride, const Messages& messages) noexcept {
    const std::int64_t first = messages.bytes(rank_ == 0 ? shape_.ranks - 1 : 0);
    stride_ = stride;
    lengths_differ_ = false;
    for (int to = 0; to < shape_.ranks; ++to) lengths_differ_ |= to != rank_ && messages.bytes(to) != first;
    return (stride + (lengths_differ_ ? 8 : 0)) * shape_.ranks;
  }
  /// This rank's slot.
  std::byte* own(Number round) const noexcept { return places_[index_of(round)]; }
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
  /// Lets the other ranks read this rank's slot. `bytes`: bytes of the whole message to each other rank.
  void publish(Number round, std::int64_t bytes) noexcept { publish(round, bytes, 0); }
  /// Lets the other ranks read their parts of this rank's slot. Called after parts() and taken(), with the same
  /// messages.
  template <class Messages>
  void publish_parts(Number round, const Messages& messages) noexcept {
    if (lengths_differ_) {
      std::byte* const lengths = own(round) + stride_ * shape_.ranks;
      for (int to = 0; to < shape_.ranks; ++to) {
        const std::int64_t bytes = messages.bytes(to);
        std::memcpy(lengths + 8 * to, &bytes, 8);
      }
    }
    publish(round, lengths_differ_ ? -1 : messages.bytes(rank_ == 0 ? shape_.ranks - 1 : 0), stride_);
  }
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
  const std::byte* of(Number round, int rank) const noexcept {
    if (rank == rank_) return own(round);
    const Entry& from = entry(rank, round);
    return from.place == in_entry ? from.data : ring(rank) + from.place;
  }
  /// The part for this rank of a slot with a part for each.
  const std::byte* part_of(Number round, int rank) const noexcept {
    return of(round, rank) + std::int64_t{entry(rank, round).stride} * rank_;
  }
  /// The bytes of the whole message from that rank to this one, after published(round, rank). -1: it carries out
  /// another collective or has left the call, and the outcome is `left`.
  std::int64_t told(Number round, int rank) noexcept;
  /// Ends a round: this rank reads nothing more of it and of those before it. Not needed for the last round of a call.
  void end(Number round) noexcept;
  /// Ends all rounds of this call so far. Needed between two collectives in one call.
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
  /// Sleeps until that rank publishes or ends a round, for `nanoseconds`, or until a signal.
  void start(const Sleep& sleep, long nanoseconds) noexcept;

 private:
  static constexpr std::size_t max_entries = 64;
  /// On lines of their own, because other ranks wait for them. 128 bytes, because processors fetch lines in pairs.
  struct alignas(128) Line {
    std::atomic<Number> ended;
    alignas(128) Bell bell;
  };
  struct alignas(128) Entry {
    std::atomic<Number> number;  ///< of the round; stored last
    std::int64_t bytes;          ///< of the message to each other rank; -1: the slot has them after its data
    std::uint32_t place;         ///< of the slot in the ring, or in_entry
    std::uint32_t stride;        ///< from one part of the slot to the next
    RoundKind kind;
    alignas(16) std::byte data[96];
  };
  static_assert(std::atomic<Number>::is_always_lock_free && sizeof(Line) == 256 && sizeof(Entry) == 128);
  static constexpr std::uint32_t in_entry = 0xffffffff;

  /// A number is that of the call and, in the lower bits, that of the round in it, from 1 on.
  static constexpr int round_bits = 28;
  static constexpr Number last_of(Number round) noexcept { return round | ((Number{1} << round_bits) - 1); }
  /// Numbers may wrap.
  static bool reached(Number number, Number wanted) noexcept { return static_cast<std::int64_t>(number - wanted) >= 0; }

  Line& line(int rank) const noexcept { return reinterpret_cast<Line*>(memory_)[rank]; }
  /// Consecutive rounds, and the first rounds of consecutive calls, have different entries.
  std::size_t index_of(Number round) const noexcept { return (round + (round >> round_bits)) & entry_mask_; }
  Entry& entry(int rank, Number round) const noexcept {
    return entries_[static_cast<std::size_t>(rank) * (entry_mask_ + 1) + index_of(round)];
  }
  std::byte* ring(int rank) const noexcept { return rings_ + rank * shape_.ring_bytes(); }
  /// That rank has ended the call of this round, so it publishes nothing more in it. False also if this was not looked
  /// at: it is once in a few checks, because what is waited for is usually an entry.
  bool has_ended_call(Number round, int rank) noexcept;
  void publish(Number round, std::int64_t bytes, std::int64_t stride) noexcept;
  /// Finds the last round that all ranks have ended. This rank may still read its own slot.
  void look_for_ended() noexcept;
  void ring_bell() noexcept {
    if (sleeps_->load(std::memory_order_relaxed) != 0) line(rank_).bell.ring();
  }

  friend struct RoundsShape;
  std::byte* const memory_;
  const RoundsShape shape_;
  const int rank_;
  const std::size_t entry_mask_;
  RankProcessors processors_;
  /// Whether any rank has slept yet: before that, no bell is rung, which takes a fence.
  std::atomic<std::uint32_t>* const sleeps_;
  Entry* const entries_;
  std::byte* const rings_;
  std::atomic<Number>* const ended_;  ///< of this rank's line
  Number round_ = 0;
  RoundKind kind_{};  ///< of round_
  bool open_ = false, first_sleep_ = false;
  SlotStores stores_;
  unsigned checks_ = 0;
  CallOutcome outcome_ = CallOutcome::complete;

  /// A part of this rank's ring, whose slots are taken and freed in order.
  struct Taken {
    Number round = 0;
    std::int64_t begin = 0;  ///< in the ring
  };
  struct Zone {
    std::int64_t first, last, head;      ///< in the ring; head: end of the slot that was taken last
    std::uint64_t oldest = 0, next = 0;  ///< of the slots that are not free, in `taken`
    Taken taken[max_entries] = {};
    /// Where `bytes` bytes are free; -1: nowhere.
    std::int64_t place_for(std::int64_t bytes) const noexcept;
    void take(Number round, std::int64_t begin, std::int64_t bytes) noexcept;
    void free_until(Number ended) noexcept;
  };

  std::byte* places_[max_entries] = {};  ///< by entry: its last slot
  Number filled_[max_entries] = {};      ///< by entry: the round of that
  Zone near_, far_;
  std::int64_t stride_ = 0;      ///< of the slot with parts that was taken last
  bool lengths_differ_ = false;  ///< of that slot's messages
  Number all_ended_ = 0;         ///< all ranks are known to have ended this round
  int blocked_on_ = 0;           ///< the rank that the last failed check waited for
  std::unique_ptr<std::byte[]> scratch_;
};

}  // namespace bestride::inline collectives
