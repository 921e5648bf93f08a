// SPDX-License-Identifier: Apache-2.0
#include "base/copy.hpp"

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace bestride {

void copy_long(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  const std::uintptr_t distance =
      (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % 4096;
  if (distance > 0 && distance < 64) {
    constexpr std::size_t line = 64;
    auto* out = static_cast<std::byte*>(to);
    auto* in = static_cast<const std::byte*>(from);
    for (; bytes >= line; bytes -= line, in += line, out += line) {
      const auto* source = reinterpret_cast<const __m128i*>(in);
      auto* destination = reinterpret_cast<__m128i*>(out);
      const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                    d = _mm_loadu_si128(source + 3);
      _mm_storeu_si128(destination, a);
      _mm_storeu_si128(destination + 1, b);
      _mm_storeu_si128(destination + 2, c);
      _mm_storeu_si128(destination + 3, d);
    }
    std::memcpy(out, in, bytes);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace bestride
