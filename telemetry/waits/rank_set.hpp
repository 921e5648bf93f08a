// SPDX-License-Identifier: Apache-2.0
#pragma once
// RankSet: ranks in ascending order, shared by all conditions that wait for the same ranks.
//
// In a collective call thousands of ranks may wait for the same thousands of others. The set is made once, so the graph
// needs memory in proportion to the ranks, and a walk over the graph visits each set once (id()).
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace bestride::inline telemetry {

/// Immutable; copies share the ranks. Thread-safe as a std::shared_ptr.
class RankSet {
 public:
  using value_type = std::int32_t;
  using const_iterator = const std::int32_t*;

  RankSet() = default;
  RankSet(std::vector<std::int32_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (!ranks.empty()) ranks_ = std::make_shared<const std::vector<std::int32_t>>(std::move(ranks));
  }
  RankSet(std::initializer_list<std::int32_t> ranks) : RankSet(std::vector(ranks)) {}

  const_iterator begin() const noexcept { return ranks_ ? ranks_->data() : nullptr; }
  const_iterator end() const noexcept { return ranks_ ? ranks_->data() + ranks_->size() : nullptr; }
  std::size_t size() const noexcept { return ranks_ ? ranks_->size() : 0; }
  bool empty() const noexcept { return !ranks_; }
  bool contains(std::int32_t rank) const noexcept { return std::binary_search(begin(), end(), rank); }
  /// The same for copies; null if it is empty.
  const void* id() const noexcept { return ranks_.get(); }

  friend bool operator==(const RankSet& a, const RankSet& b) noexcept {
    return a.ranks_ == b.ranks_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> ranks_;
};

}  // namespace bestride::inline telemetry
