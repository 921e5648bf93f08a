// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/spelling.hpp"

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {

Spelling::Spelling(const Step& step, std::uint64_t call, int rank)
    : seed_(fuzz_mix(fuzz_mix(step.seed + call) + static_cast<std::uint64_t>(rank))) {
  test::Random random(seed_);
  for (int* set : {&out_, &in_})
    for (int way = 0; way < ways; ++way) {
      const bool drawn = random.chance(way == static_cast<int>(Way::late) ? 15 : 30);
      if (drawn && (step.spell >> way & 1)) *set |= 1 << way;
    }
}

}  // namespace bestride::fuzz
