// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shape: the numbers of a layout that its cost depends on. Computed once for each layout, so that a choice does not
// traverse the tree.
//
// Two of them are properties of the datatype that the call uses, not of the byte sequence. First, an MPI engine
// processes an innermost loop fast if the loop fits a fragment, and block by block (MPICH: 13 ns for each block) if a
// fragment boundary divides it; 8192 elements of 8 bytes cost ten times less than one vector of 64 KiB with the same
// bytes. Second, the engine's inner loops are compiled for each basic type.
#include <cstdint>

#include "datatype/layout.hpp"

namespace bestride::inline perfmodel {

/// The basic types of the elements, as far as MPI engines distinguish them.
enum class Leaf : std::uint8_t {
  four,   ///< one basic type of at most 4 bytes
  eight,  ///< one basic type of more than 4 bytes
  mixed,  ///< several basic types: a struct
};
inline constexpr int leaf_count = 3;

/// How the datatype of the call represents its bytes.
struct TypeRepresentation {
  std::int64_t unit_bytes = 0;  ///< packed bytes of the innermost loop or list of the datatype (DecodedType); 0: all of
                                ///< it
  Leaf leaf = Leaf::eight;
  /// `leaf_bytes`: size of the only basic type; 0 if there are several.
  static constexpr Leaf leaf_of(std::int64_t leaf_bytes) noexcept {
    return leaf_bytes == 0 ? Leaf::mixed : leaf_bytes <= 4 ? Leaf::four : Leaf::eight;
  }
};

struct Shape {
  enum class Class : std::uint8_t {
    contiguous,  ///< one block
    vector,      ///< one loop over one block
    nest,        ///< two or more loops over a block, or a few such nests in sequence
    record,      ///< a loop over a few blocks (arrays of structs)
    list,        ///< block lists, and everything else
  };
  Class kind = Class::contiguous;
  Leaf leaf = Leaf::eight;
  int loops = 0;                 ///< depth of the nest
  std::int64_t bytes = 0;        ///< packed
  std::int64_t blocks = 0;       ///< contiguous runs
  std::int64_t block_bytes = 0;  ///< mean run length, rounded down, at least 1
  std::int64_t inner_count = 1;  ///< iterations of the innermost loop; 1 if there is none
  std::int64_t outer_count = 1;  ///< iterations of the outermost loop, which respelling can use as count; 1 if there is
                                 ///< none
  std::int64_t jump = 0;        ///< geometric mean of the distances between the starts of consecutive blocks, in bytes;
                                ///< 0 if there is one block
  std::int64_t footprint = 0;   ///< high - low: the range of memory that is accessed
  std::int64_t unit_bytes = 0;  ///< as in TypeRepresentation; not 0 if there are bytes

  /// Visits the tree, with at most 64 entries of each list. Allocates nothing.
  static Shape of(const Layout& layout, const TypeRepresentation& spelling = {}) noexcept;
};

}  // namespace bestride::inline perfmodel
