// SPDX-License-Identifier: Apache-2.0
#pragma once
// System calls without libc. While the linker relocates this object, its references to libc's functions may not be
// bound yet, and a sanitizer's runtime may replace those functions although it is not initialized yet.
#include <cstddef>
#include <cstdint>

namespace bestride::preload {

/// The system's result: an error is a negative errno value. Does not change errno.
inline long system_call(long number, std::uintptr_t first, std::size_t second, std::uintptr_t third) noexcept {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register std::uintptr_t x0 __asm__("x0") = first;
  register std::size_t x1 __asm__("x1") = second;
  register std::uintptr_t x2 __asm__("x2") = third;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory", "cc");
  return static_cast<long>(x0);
#endif
}

}  // namespace bestride::preload
