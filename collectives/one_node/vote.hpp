// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vote: the ranks agree on numbers, in one round. Allocates nothing, so no rank can fail to take part.
#include <cstdint>
#include <span>

#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

class Vote {
 public:
  static constexpr std::size_t max_values = 8;
  /// values[i] becomes the largest values[i] of all ranks. Without values it is a barrier. `values`: at most
  /// max_values, as many on all ranks; they outlive this object.
  Vote(Rounds& rounds, std::span<std::int64_t> values) noexcept
      : rounds_(rounds), values_(values), round_(rounds.begin(RoundKind::vote)) {}

  /// Continues as far as possible without waiting. True: the vote has ended, or a rank has not taken part, which
  /// rounds.outcome() shows; not called again after that.
  bool step() noexcept;

 private:
  Rounds& rounds_;
  const std::span<std::int64_t> values_;
  const Rounds::Number round_;
  bool published_ = false;
  int next_ = 0;  ///< the next rank whose values are to be read
};

}  // namespace bestride::inline collectives
