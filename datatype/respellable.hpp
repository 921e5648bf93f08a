// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which layouts have a second spelling (datatype/respell.hpp makes it): a question that needs no MPI.
#include <cstdint>

#include "datatype/layout.hpp"

namespace bestride {

/// Nothing but loops of positive stride over one block, or one block alone; `leaf_size`, the size of the one basic type in bytes
/// (0: there are several), divides the block.
inline bool respellable(const Layout& layout, std::int64_t leaf_size) noexcept {
  const Node* node = layout.root();
  if (!node || leaf_size <= 0) return false;
  for (; node->kind == Node::Kind::loop; node = node->body.get())
    if (node->stride <= 0) return false;
  return node->kind == Node::Kind::block && node->size % leaf_size == 0;
}

}  // namespace bestride
