// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_rank.hpp"

#include <cstdlib>
#include <initializer_list>

namespace bestride {

int launcher_rank() noexcept {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* const text = std::getenv(name);
    if (!text || *text < '0' || *text > '9') continue;
    int rank = 0;  // not by strtol, whose symbol differs between versions of glibc
    for (const char* c = text; *c >= '0' && *c <= '9' && rank < 100'000'000; ++c) rank = 10 * rank + (*c - '0');
    return rank;
  }
  return -1;
}

}  // namespace bestride
