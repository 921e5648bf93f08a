// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace bestride::inline kernels {

/// pack: from the user's buffer to contiguous bytes; unpack: the reverse.
enum class Direction : std::uint8_t { pack, unpack };

}  // namespace bestride::inline kernels
