// SPDX-License-Identifier: Apache-2.0
#pragma once
// Partition: ranks divided into numbered parts, such as the nodes of a job.
//
// Parts are numbered by their lowest rank, and the ranks of a part are in ascending order. So processes that make a
// Partition from the same identities get the same numbers without communication. Immutable; threads may read it
// concurrently.
#include <cstddef>
#include <span>
#include <vector>

namespace bestride::inline model {

class Partition {
 public:
  /// A partition of no ranks.
  Partition() = default;
  /// `identities[rank]` is equal for the ranks of one part; the values have no other meaning. May throw std::bad_alloc.
  explicit Partition(std::span<const int> identities);

  int ranks() const noexcept { return static_cast<int>(part_.size()); }
  int parts() const noexcept { return static_cast<int>(first_.size()) - 1; }
  /// 0 .. parts()-1.
  int part_of(int rank) const noexcept { return part_[static_cast<std::size_t>(rank)]; }
  /// The position of the rank among the ranks of its part: 0 .. members(part).size()-1.
  int place_of(int rank) const noexcept { return place_[static_cast<std::size_t>(rank)]; }
  /// Ascending. Valid during the lifetime of this partition.
  std::span<const int> members(int part) const noexcept {
    const std::size_t begin = static_cast<std::size_t>(first_[static_cast<std::size_t>(part)]);
    return {by_part_.data() + begin, static_cast<std::size_t>(first_[static_cast<std::size_t>(part) + 1]) - begin};
  }
  /// Number of ranks in the largest and in the smallest part; 0 if there are no parts.
  int largest() const noexcept { return largest_; }
  int smallest() const noexcept { return smallest_; }

  bool operator==(const Partition& other) const noexcept { return part_ == other.part_; }

 private:
  std::vector<int> part_;      ///< by rank
  std::vector<int> place_;     ///< by rank
  std::vector<int> by_part_;   ///< ranks, one part after the other
  std::vector<int> first_{0};  ///< index in by_part_ where the ranks of a part begin; the last entry is the end
  int largest_ = 0, smallest_ = 0;
};

}  // namespace bestride::inline model
