// SPDX-License-Identifier: Apache-2.0
#pragma once
// NodeMemory: the memory that the ranks of this node share. All of them share small records from MPI_Init on. Through
// its record the members of a communicator get larger parts when they need them, without messages
// (collectives/one_node/setup.hpp). The memory of a freed communicator is used again.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collectives/core/window.hpp"
#include "collectives/one_node/part_pool.hpp"
#include "collectives/one_node/setup.hpp"
#include "model/topology.hpp"

namespace bestride::inline interpose {

/// Each kind of call has memory of its own: a rank may make a call of one kind while others are still in one of
/// another kind.
enum class PartKind { blocking, nonblocking, neighbors, nonblocking_neighbors };
inline constexpr int part_kinds = 4;

/// What the members of a communicator share before they have memory. Zero before the first use. In memory, two
/// Announcements for each rank of the node follow.
struct CommRecord {
  std::array<PartOffer, part_kinds> offers;
  /// 2 * the number of a question + the answer of rank 0; only grows.
  alignas(64) std::atomic<int> decision;
  /// The last communicators of odd and of even number, created by the members of this one, of which some member has
  /// no memory.
  std::atomic<std::uint32_t> without_memory[2];
  /// Members that do not look at the record any more. One may look for an answer when rank 0 has freed the
  /// communicator.
  std::atomic<int> departed;
};
/// The number of a communicator that the members create, and 1 + the index of the record that a rank gives it if it is
/// rank 0 there.
using Announcement = std::atomic<std::uint64_t>;

class NodeMemory {
 public:
  /// Collective over MPI_COMM_WORLD, whose topology is `world`. False: there is no memory.
  bool join(const Topology& world) noexcept;
  /// Called once, when all ranks have joined.
  void all_have_joined() noexcept { window_.close_descriptor(); }

  /// An unused record, for a communicator in which this rank is rank 0; -1: all are in use. Thread-safe.
  int take() noexcept;
  /// Gives a record back that was not written, so that it is zero. Thread-safe.
  void put_back_unused(int index) noexcept;
  /// Gives a record back. It is used again when `ranks` members have departed. Thread-safe.
  void put_back(int index, int ranks) noexcept;
  /// Any rank's record. Valid until the process ends.
  CommRecord& at(int index) noexcept { return *reinterpret_cast<CommRecord*>(record(index)); }
  /// The announcement of a rank of this node in any rank's record. `number`: of the new communicator among those that
  /// the members create.
  Announcement& announcement(int index, int local_rank, std::uint32_t number) noexcept {
    auto* const first = reinterpret_cast<Announcement*>(record(index) + sizeof(CommRecord));
    return first[2 * local_rank + static_cast<int>(number % 2)];
  }
  int local_rank() const noexcept { return local_rank_; }
  /// How many records there are, of all ranks of the node together.
  int records() const noexcept { return records_; }

  /// Takes memory for a record of this rank from the pool of parts; see PartPool::take(). Thread-safe.
  Part give(int index, std::int64_t bytes, PartPool::From from, std::int64_t limit) noexcept;
  /// True if there is a part of so many bytes that was used before. Thread-safe.
  bool has_used(std::int64_t bytes) noexcept;
  /// Calls of a communicator that this rank has led, which was freed without memory: they pay for that of later ones.
  /// In units of Usage. Thread-safe.
  void add_left_calls(std::int64_t calls) noexcept { left_calls_.fetch_add(calls, std::memory_order_relaxed); }
  /// False: there were fewer so far. Thread-safe.
  bool pay(std::int64_t calls) noexcept;
  /// The beginning of a window of another rank of the node, which is mapped if needed; nullptr: it can't be. See
  /// SegmentMap::find(). Thread-safe.
  std::byte* find(const WindowKey& key) noexcept;

 private:
  struct Own {
    bool zero = true;  ///< the record, when it is taken
    int ranks = 0;     ///< that have to depart before it can be used again
    std::array<Part, part_kinds * PartOffer::most_parts> parts;
    std::size_t count = 0;  ///< of `parts`
  };
  bool left_by_all(int own) noexcept;
  /// Takes back the records that all members have left. Called with the lock.
  void collect() noexcept;

  Window window_;
  std::byte* record(int index) const noexcept { return window_.data() + static_cast<std::size_t>(index) * stride_; }
  int local_rank_ = 0, records_ = 0;
  std::size_t stride_ = 0;  ///< from record to record
  int first_ = 0;           ///< index of this rank's first record
  std::mutex mutex_;
  std::vector<Own> own_;
  std::vector<int> free_, departing_;  ///< indices of `own_`; a departing one may still be used by other members
  std::atomic<int> spare_{-1};         ///< index of a record that is zero, for the next communicator
  std::atomic<std::int64_t> left_calls_{0};
  PartPool pool_;
  SegmentMap others_;
};

}  // namespace bestride::inline interpose
