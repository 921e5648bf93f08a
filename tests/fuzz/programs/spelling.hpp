// SPDX-License-Identifier: Apache-2.0
#pragma once
// How one rank writes the arguments of one call.
//
// The meaning of a call (which bytes go where) follows from the step and is the same on all ranks. Each rank chooses
// among the spellings of that meaning on its own, so ranks of one call differ in everything that only they see: null
// pointers, base addresses, datatypes, invalid arguments that are not significant. All of them are correct: a spelling
// that MPICH 4.0.2 alone rejects is not drawn.
#include <cstdint>

#include "tests/fuzz/programs/step.hpp"
#include "tests/support/random.hpp"

namespace bestride::fuzz {

enum class Way {
  empty_null,  ///< NULL for a buffer of no bytes and for arrays without elements
  null_type,   ///< MPI_DATATYPE_NULL for a block of no elements, where MPICH does not look at it
  empty_type,  ///< a datatype of no bytes for no elements
  one_base,    ///< one address for both directions, with displacements that keep the blocks apart
  one_list,    ///< one array for equal counts, displacements or types of both directions
  far_base,    ///< an address outside the buffer, with displacements that lead back
  bottom,      ///< MPI_BOTTOM and a datatype of absolute addresses
  unused,      ///< what is not significant on this rank is invalid
  in_place,    ///< MPI_IN_PLACE, where a rank may choose it on its own
  large,       ///< the function whose counts are MPI_Count
  late,        ///< the rank computes for up to a few hundred microseconds before the call
};
inline constexpr int ways = static_cast<int>(Way::late) + 1;
inline constexpr int all_ways = (1 << ways) - 1;

class Spelling {
 public:
  /// Of `rank` in the call with this number. The ways that step.spell excludes have no effect on the others.
  Spelling(const Step& step, std::uint64_t call, int rank);

  bool is(Way way, bool out = true) const { return (out ? out_ : in_) >> static_cast<int>(way) & 1; }
  /// A stream for the details of a way.
  test::Random details(Way way, bool out = true) const {
    return test::Random(seed_ + static_cast<std::uint64_t>(way) * 2 + out);
  }

 private:
  std::uint64_t seed_;
  int out_ = 0, in_ = 0;  ///< sets of Way, for each direction of the call
};

}  // namespace bestride::fuzz
