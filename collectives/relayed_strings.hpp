// SPDX-License-Identifier: Apache-2.0
#pragma once
// RelayedStrings: strings as they are combined where nodes get unequally many bytes: of a node, what it gets straight, and behind that
// what it relays to others.
#include <cstddef>
#include <vector>

#include "collectives/relays.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// A view of the strings. It has no parts: who gets what is said by the strings themselves.
class RelayedStrings final : public NodeStrings {
 public:
  /// Both outlive this; the plan is of these strings. May throw std::bad_alloc.
  RelayedStrings(const NodeStrings& strings, const RelayPlan& plan, int nodes);

  std::int64_t bytes(int node) const noexcept override { return begins_[static_cast<std::size_t>(node)].back(); }
  Range part(int, int) const noexcept override { return {}; }
  std::byte* at(int, Range) const noexcept override { return nullptr; }
  void read(int node, Range range, void* to) const noexcept override;
  void write(int node, Range range, const void* from) const noexcept override;

  /// The stretches of a node's string here: the first is what it gets straight, number i + 1 is RelayPlan::through(node)[i].
  std::size_t stretches(int node) const noexcept { return begins_[static_cast<std::size_t>(node)].size() - 1; }
  struct Met {
    int node = 0;             ///< whose string
    Range range;              ///< of it; bytes() <= 0: nothing
    std::int64_t offset = 0;  ///< from the beginning of what was asked about
  };
  /// What a range of a node's string here has of a stretch.
  Met meet(int node, std::size_t stretch, Range range) const noexcept;

 private:
  const NodeStrings& strings_;
  const RelayPlan& plan_;
  std::vector<std::vector<std::int64_t>> begins_;  ///< by node: where its stretches begin in its string, and the end
};

}  // namespace bestride
