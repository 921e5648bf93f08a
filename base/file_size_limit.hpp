// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this process may make a file so large. Beyond its limit (RLIMIT_FSIZE, ulimit -f) the kernel not only refuses
// it: SIGXFSZ ends the process. Files in memory count, too.
#include <sys/resource.h>

#include <cstddef>

namespace bestride {

inline bool within_file_size_limit(std::size_t bytes) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

}  // namespace bestride
