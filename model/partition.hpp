// SPDX-License-Identifier: Apache-2.0
#pragma once
// Partition: ranks dealt into numbered parts, such as the nodes of a job.
//
// Parts are numbered by their lowest rank, and a part's ranks stand in ascending order, so that all who made one from the same
// identities number alike without asking each other. Immutable; safe to read from any thread.
#include <cstddef>
#include <span>
#include <vector>

namespace bestride {

class Partition {
 public:
  /// Of no ranks.
  Partition() = default;
  /// `identities[rank]` is equal for the ranks of one part, of any value otherwise. May throw std::bad_alloc.
  explicit Partition(std::span<const int> identities);

  int ranks() const noexcept { return static_cast<int>(part_.size()); }
  int parts() const noexcept { return static_cast<int>(first_.size()) - 1; }
  /// 0 .. parts()-1.
  int part_of(int rank) const noexcept { return part_[static_cast<std::size_t>(rank)]; }
  /// The rank's place among the ranks of its part: 0 .. members(part).size()-1.
  int place_of(int rank) const noexcept { return place_[static_cast<std::size_t>(rank)]; }
  /// Ascending. Valid as long as this partition.
  std::span<const int> members(int part) const noexcept {
    const std::size_t begin = static_cast<std::size_t>(first_[static_cast<std::size_t>(part)]);
    return {by_part_.data() + begin, static_cast<std::size_t>(first_[static_cast<std::size_t>(part) + 1]) - begin};
  }
  /// Ranks in the fullest and in the emptiest part; 0 where there is none.
  int largest() const noexcept { return largest_; }
  int smallest() const noexcept { return smallest_; }

  bool operator==(const Partition& other) const noexcept { return part_ == other.part_; }

 private:
  std::vector<int> part_;      ///< by rank
  std::vector<int> place_;     ///< by rank
  std::vector<int> by_part_;   ///< ranks, part after part
  std::vector<int> first_{0};  ///< where a part's ranks begin in by_part_, and the end
  int largest_ = 0, smallest_ = 0;
};

}  // namespace bestride
