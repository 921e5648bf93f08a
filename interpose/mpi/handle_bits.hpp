// SPDX-License-Identifier: Apache-2.0
#pragma once
// An MPI handle as a number. A template, because a handle is an int in one MPI ABI and a pointer in another.
#include <cstdint>
#include <cstring>

namespace bestride::inline interpose {

/// The bytes of `handle`, followed by zeros.
template <class Handle>
std::uint64_t bits_of(Handle handle) noexcept {
  std::uint64_t bits = 0;
  static_assert(sizeof handle <= sizeof bits);
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}

}  // namespace bestride::inline interpose
