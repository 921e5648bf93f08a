// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a blocking collective of ranks on one node goes through the memory that they share, or is left to the MPI
// library.
//
// A pure function of numbers that all members have alike. The bounds were measured with 2 ranks on 2 processors and
// MPICH 4.0.2 (bench/figures.md). With more ranks than processors the library, which does not sleep while it waits,
// takes 10 to 300 times as long, at every size.
#include <algorithm>
#include <cstdint>

#include "perfmodel/collective/shape.hpp"

namespace bestride::inline perfmodel {

enum class OneNodeChoice {
  library,
  shared_memory,
  /// Through shared memory if some member has a datatype with gaps: only the members together know.
  if_any_has_gaps,
};

/// `bytes`: as in CollectiveShape. `crowded`: more ranks on the node than processors that they may use.
OneNodeChoice choose_on_one_node(Collective what, std::int64_t bytes, int ranks, bool crowded) noexcept;

/// After a call in which the members asked each other in vain, the next calls don't ask: 1, 2, 4, ... of them, up to a
/// bound. All members count alike.
class AskingInterval {
 public:
  bool asks() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void answered(bool in_vain) noexcept { left_ = length_ = in_vain ? std::min(most, std::max(1, 2 * length_)) : 0; }

 private:
  static constexpr int most = 64;
  int left_ = 0, length_ = 0;
};

}  // namespace bestride::inline perfmodel
