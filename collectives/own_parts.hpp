// SPDX-License-Identifier: Apache-2.0
#pragma once
// OwnParts: a node's own string inside the node: each rank has its part of it, and in the end all of it.
#include <cstdint>
#include <vector>

#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

class OwnParts {
 public:
  /// Both outlive this. `piece`: bytes at a time, at most a slot. May throw std::bad_alloc.
  OwnParts(Hierarchy& hierarchy, const NodeStrings& strings, std::int64_t piece);

  /// Hands this rank's part to its neighbours, and takes theirs: adds what that needs to `strands`, which must end before this does.
  void exchange(std::vector<Strand>& strands);
  /// All bytes of a range of the node's string are in this rank's buffer.
  bool here(Range range) const noexcept;

 private:
  Strand give();
  Strand take(int q);

  Hierarchy& h_;
  const NodeStrings& strings_;
  const std::int64_t piece_;
  std::vector<std::int64_t> taken_;  ///< by local rank: up to where its part is here
};

}  // namespace bestride
