// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 64-bit FNV-1a hash. It detects damage and tells texts apart; it does not protect against deliberate changes.
#include <cstdint>
#include <string_view>

namespace bestride {

/// The hash of no bytes. FNV's own start ends in one digit more, 7; profiles on disk are signed with this one.
inline constexpr std::uint64_t fnv1a_start = 1469598103934665603u;

/// The hash of what `hash` covers, followed by `value`: a byte, or a word that is added at once.
constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t value) noexcept {
  return (hash ^ value) * 1099511628211u;
}

/// The hash of `bytes`.
constexpr std::uint64_t fnv1a(std::string_view bytes) noexcept {
  std::uint64_t hash = fnv1a_start;
  for (const char byte : bytes) hash = fnv1a(hash, static_cast<unsigned char>(byte));
  return hash;
}

}  // namespace bestride
