// SPDX-License-Identifier: Apache-2.0
#pragma once
// Edges: neighbor collectives of ranks that share one memory, along the edges of their virtual topology.
//
// Each edge has a ring of slots that only its source fills and only its destination empties, so a rank waits for its
// neighbors only, as in the MPI library. A message is cut into pieces, one per slot; it has at least one, so that both
// ends count alike even if the message is empty. The number of a piece is stored in its slot, last, and the destination
// stores how many it has taken. A long contiguous message is one piece without data: the destination copies it from the
// source's buffer (process_vm_readv). If the kernel forbids that, it says so, and the source sends the data instead.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/core/operand.hpp"
#include "collectives/core/slot_stores.hpp"
#include "collectives/one_node/bell.hpp"
#include "collectives/one_node/rank_processors.hpp"

namespace bestride::inline collectives {

/// Layout of the memory; the same on all ranks.
struct EdgesShape {
  static constexpr int slots = 4;
  int ranks = 1;
  std::int64_t edges = 0;
  std::int64_t slot_bytes = 0;  ///< a multiple of 4096

  /// Slots of at most 32 KiB, as large as `limit` bytes allow, but at least 4096 bytes.
  static EdgesShape within(int ranks, std::int64_t edges, std::int64_t limit) noexcept;
  std::size_t bytes() const noexcept;
  /// What lies before the first edge: a bell for each rank, then their processors.
  std::size_t head_bytes() const noexcept;
  /// Zeroes what must be zero before the first use.
  void clear(std::byte* memory) const noexcept;
};

/// One end of an edge.
struct EdgeEnd {
  static constexpr std::int64_t none = -1;
  std::int64_t edge = none;  ///< number of the edge, 0 to EdgesShape::edges - 1; none: the neighbor is MPI_PROC_NULL
  int peer = 0;              ///< rank at the other end
  int process = 0;           ///< its process ID
};

/// The view of one rank. Used by one thread at a time.
class Edges {
 public:
  /// Longer contiguous messages are copied from the source's buffer. Measured with 2 ranks: figures_one_node.md.
  static constexpr std::int64_t longest_through_slots = 16 * 1024;

  /// `memory`: shape.bytes() bytes, shared, zero before the first use, aligned to 128; it outlives this object. `out`:
  /// the edges of which this rank is the source; `incoming`: how many lead to it. May throw std::bad_alloc.
  Edges(std::byte* memory, const EdgesShape& shape, int rank, std::span<const EdgeEnd> out, std::size_t incoming);

  /// Begins a neighbor collective, after the end of the one before.
  void begin() noexcept;
  /// Continues it as far as possible without waiting. True: it has ended. The arguments are the same in all steps.
  /// `in`: the edges of which this rank is the destination, in the order of the blocks. input.of(i) is sent along
  /// out[i], and output.of(i) receives from in[i]; blocks of edges `none` are not used. If a message is longer than its
  /// block, the rest is dropped and truncated() is set. Allocates nothing, so no rank can fail to take part.
  bool step(std::span<const EdgeEnd> in, const Operands& input, const Operands& output) noexcept;
  bool truncated() const noexcept { return truncated_; }
  /// True if the kernel has forbidden this rank or a destination to copy from another rank's buffer.
  bool copies_refused() const noexcept { return copies_refused_; }

  RankProcessors& processors() noexcept { return processors_; }

  /// A sleep is prepared, then the condition is checked once more, then it is started or cancelled. So no wake-up is
  /// lost.
  struct Sleep {
    std::uint32_t rings;  ///< before the check
  };
  Sleep prepare_sleep() noexcept;
  bool still(const Sleep&) const noexcept { return true; }
  void cancel(const Sleep&) noexcept;
  /// Sleeps until a neighbor has filled or emptied a slot, for `nanoseconds`, or until a signal.
  void start(const Sleep& sleep, long nanoseconds) noexcept;

 private:
  using Number = std::uint64_t;
  struct alignas(128) BellLine {
    Bell bell;
  };
  /// Written by the destination.
  struct alignas(128) Taken {
    std::atomic<Number> pieces;
    std::atomic<std::uint32_t> refuses;  ///< 1: data is not to be left in the source's buffer
  };
  /// The head of a slot, written by the source.
  struct alignas(64) Head {
    std::atomic<Number> number;  ///< of the piece, from 1 on; stored last
    std::int64_t message_bytes;
    std::uint64_t address;  ///< of the whole message in the source's buffer; 0: this piece of it follows
  };
  static_assert(std::atomic<Number>::is_always_lock_free && sizeof(BellLine) == 128 && sizeof(Taken) == 128 &&
                sizeof(Head) == 64);

  /// The state of a message that this rank sends or receives.
  struct Message {
    std::int64_t moved = 0;  ///< bytes
    bool ended = false;
    bool in_place = false;  ///< sent: the destination has been given the address
  };

  Bell& bell(int rank) const noexcept { return reinterpret_cast<BellLine*>(memory_)[rank].bell; }
  std::byte* edge(std::int64_t number) const noexcept;
  Taken& taken(std::int64_t number) const noexcept { return *reinterpret_cast<Taken*>(edge(number)); }
  Head& slot(std::int64_t number, Number piece) const noexcept;
  std::byte* data(Head& slot) const noexcept { return reinterpret_cast<std::byte*>(&slot + 1); }

  bool send(std::size_t i, const Operands& input) noexcept;
  bool receive(std::size_t i, const EdgeEnd& end, const Operands& output) noexcept;
  bool copy_from(const EdgeEnd& end, std::uint64_t address, const Operand& to, std::int64_t bytes) noexcept;

  friend struct EdgesShape;
  std::byte* const memory_;
  const EdgesShape shape_;
  const int rank_;
  RankProcessors processors_;
  const std::vector<EdgeEnd> out_;
  std::vector<Number> sent_;      ///< pieces, for each outgoing edge
  std::vector<Number> received_;  ///< pieces, by the number of the edge
  std::vector<Message> sending_, receiving_;
  SlotStores stores_;
  std::unique_ptr<std::byte[]> between_;  ///< for copies to blocks with gaps
  bool truncated_ = false, copies_refused_ = false;
};

}  // namespace bestride::inline collectives
