// SPDX-License-Identifier: Apache-2.0
#pragma once
// Agreement: all members obtain the bitwise AND of a few words.
//
// Inside the node the words go through the channels to the first rank and back. Between the first ranks of the nodes a
// dissemination algorithm is used: in round r each sends to the node at distance 2^r, so there are ceil(log2 nodes)
// messages of a few bytes. Combining a word twice does not change the result, so any number of nodes works.
#include <cstdint>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

struct AgreedWords {
  std::uint64_t word[4] = {};
  AgreedWords& operator&=(const AgreedWords& other) noexcept {
    for (int i = 0; i < 4; ++i) word[i] &= other.word[i];
    return *this;
  }
};

enum class AgreementScope {
  node,  ///< only the ranks of a node agree, among themselves
  all,
};

/// `words`: on entry this rank's words; at the end the AND of the words of all ranks in scope. Must outlive the task.
/// The task ends only after all ranks in scope have begun.
Task agree(Hierarchy& hierarchy, AgreedWords& words, AgreementScope reach);

}  // namespace bestride::inline collectives
