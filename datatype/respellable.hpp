// SPDX-License-Identifier: Apache-2.0
#pragma once
// Determines which layouts have an equivalent datatype (datatype/respell.hpp builds it). Needs no MPI.
#include <cstdint>

#include "datatype/layout.hpp"

namespace bestride::inline datatype {

/// True if the layout is one block, or consists only of loops of positive stride over one block, and `leaf_size`
/// divides the block. `leaf_size`: size of the only basic type in bytes; 0 if there are several.
inline bool respellable(const Layout& layout, std::int64_t leaf_size) noexcept {
  const Node* node = layout.root();
  if (!node || leaf_size <= 0) return false;
  for (; node->kind == Node::Kind::loop; node = node->body.get())
    if (node->stride <= 0) return false;
  return node->kind == Node::Kind::block && node->size % leaf_size == 0;
}

}  // namespace bestride::inline datatype
