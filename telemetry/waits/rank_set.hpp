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
    if (ranks.empty()) return;
    const auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(ranks));
    first_ = {owner, owner->data()};
    size_ = owner->size();
  }
  RankSet(std::initializer_list<std::int32_t> ranks) : RankSet(std::vector(ranks)) {}
  /// A set of one rank for each of `ranks`, which they share.
  static std::vector<RankSet> singles(std::vector<std::int32_t> ranks) {
    const auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(ranks));
    std::vector<RankSet> result(owner->size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i].first_ = {owner, owner->data() + i};
      result[i].size_ = 1;
    }
    return result;
  }

  const_iterator begin() const noexcept { return first_.get(); }
  const_iterator end() const noexcept { return first_.get() + size_; }
  std::int32_t front() const noexcept { return *first_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool contains(std::int32_t rank) const noexcept { return std::binary_search(begin(), end(), rank); }
  /// Identifies the set: equal for a set and its copies; null if it is empty.
  const void* id() const noexcept { return first_.get(); }

  friend bool operator==(const RankSet& a, const RankSet& b) noexcept {
    return a.size_ == b.size_ && (a.first_ == b.first_ || std::equal(a.begin(), a.end(), b.begin()));
  }

 private:
  std::shared_ptr<const std::int32_t> first_;
  std::size_t size_ = 0;
};

}  // namespace bestride::inline telemetry
