// SPDX-License-Identifier: Apache-2.0
#pragma once
// RankProcessors: on which processor each rank of a node was when it last waited, in memory that the ranks share.
//
// Of two ranks on one processor only one can run. So a rank that waits by spinning while another one is on its own
// processor waits for the end of a time slice, and one that waits while all others are on other processors need not
// sleep (docs/decisions/waiting.md).
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bestride::inline collectives {

/// The view of one rank. Used by one thread at a time. Zeroed memory: no rank has waited yet.
class RankProcessors {
 public:
  /// A multiple of 128.
  static constexpr std::size_t bytes(int ranks) noexcept {
    return (static_cast<std::size_t>(ranks) * sizeof(std::atomic<std::int32_t>) + 127) / 128 * 128;
  }
  /// `memory`: bytes(ranks) bytes, shared, zero before the first use; it outlives this object.
  RankProcessors(std::byte* memory, int ranks, int rank) noexcept
      : of_(reinterpret_cast<std::atomic<std::int32_t>*>(memory)), ranks_(ranks), rank_(rank) {}

  /// This rank is on `processor`. Writes only if that has changed, so the memory stays in the caches of all ranks.
  void set(int processor) noexcept {
    if (processor == own_) return;
    own_ = processor;
    of_[rank_].store(processor + 1, std::memory_order_relaxed);
  }
  /// True if another rank has last been on this rank's processor.
  bool shared() const noexcept {
    for (int other = 0; other < ranks_; ++other)
      if (other != rank_ && of_[other].load(std::memory_order_relaxed) == own_ + 1) return own_ >= 0;
    return false;
  }

 private:
  std::atomic<std::int32_t>* const of_;  ///< by rank: number of the processor + 1; 0: not known
  const int ranks_, rank_;
  int own_ = -1;
};
static_assert(std::atomic<std::int32_t>::is_always_lock_free && sizeof(std::atomic<std::int32_t>) == 4);

}  // namespace bestride::inline collectives
