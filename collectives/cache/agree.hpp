// SPDX-License-Identifier: Apache-2.0
#pragma once
// Agreement: a few words of bits of which all members get the conjunction.
//
// Inside the node through the channels, to the first rank and back; between the first ranks of the nodes by dissemination: in round r to
// the node 2^r further on, ceil(log2 nodes) messages of a few bytes. Combining a word twice does no harm, so any number of nodes will do.
#include <cstdint>

#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"

namespace bestride {

struct AgreedWords {
  std::uint64_t word[4] = {};
  AgreedWords& operator&=(const AgreedWords& other) noexcept {
    for (int i = 0; i < 4; ++i) word[i] &= other.word[i];
    return *this;
  }
};

enum class Reach {
  node,  ///< the ranks of a node agree among themselves
  all,
};

/// `words`: this rank's; in the end, those of all within reach combined. Outlives the strand. It ends when all within reach have begun.
Strand agree(Hierarchy& hierarchy, AgreedWords& words, Reach reach);

}  // namespace bestride
