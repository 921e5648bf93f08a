// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shape: the few numbers of a layout that its cost depends on. Made once per layout, so that a choice reads no tree.
//
// Two things here are not properties of the byte sequence but of how the call spells it: an MPI engine that runs through an innermost
// loop fast when it fits a fragment, and block by block (MPICH: 13 ns a block) when a fragment breaks it, costs ten times less for
// 8192 elements of 8 bytes than for one vector of 64 KiB with the same bytes; and its inner loops are compiled per basic type.
#include <cstdint>

#include "datatype/layout.hpp"

namespace bestride {

/// The basic types the elements are made of, as far as MPI engines differ on them.
enum class Leaf : std::uint8_t {
  four,   ///< one basic type of at most 4 bytes
  eight,  ///< one basic type of more
  mixed,  ///< several: a struct somewhere
};
inline constexpr int leaf_count = 3;

/// How the call spells its bytes.
struct Spelling {
  std::int64_t unit_bytes = 0;  ///< packed bytes of the innermost loop or list as spelled (DecodedType); 0: all of it
  Leaf leaf = Leaf::eight;
  /// `leaf_bytes`: size of the one basic type, 0 if there are several.
  static constexpr Leaf leaf_of(std::int64_t leaf_bytes) noexcept {
    return leaf_bytes == 0 ? Leaf::mixed : leaf_bytes <= 4 ? Leaf::four : Leaf::eight;
  }
};

struct Shape {
  enum class Class : std::uint8_t {
    contiguous,  ///< one block
    vector,      ///< one loop over a block
    nest,        ///< two or more loops over a block, or a few such side by side
    record,      ///< a loop over a few blocks (arrays of structs)
    list,        ///< block lists, anything else
  };
  Class kind = Class::contiguous;
  Leaf leaf = Leaf::eight;
  int loops = 0;                  ///< depth of the nest
  std::int64_t bytes = 0;         ///< packed
  std::int64_t blocks = 0;        ///< contiguous runs
  std::int64_t block_bytes = 0;   ///< mean run length, rounded down, at least 1
  std::int64_t inner_count = 1;   ///< turns of the innermost loop, 1 if none
  std::int64_t outer_count = 1;   ///< turns of the outermost loop, 1 if none: what respelling can expose as count
  std::int64_t jump = 0;          ///< bytes from one block's start to the next's, geometric mean; 0 if there is one block
  std::int64_t footprint = 0;     ///< high - low: the memory walked over
  std::int64_t unit_bytes = 0;    ///< as in Spelling; never 0 if there are bytes

  /// Cost: a visit of the tree, of at most 64 entries of each list. Allocates nothing.
  static Shape of(const Layout& layout, const Spelling& spelling = {}) noexcept;
};

}  // namespace bestride
