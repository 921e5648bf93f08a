// SPDX-License-Identifier: Apache-2.0
#pragma once
// StandardArithmetic: sets round to nearest even, denormal numbers kept and no traps, for a scope. Programs built with
// -ffast-math, by compilers that flush denormals by default, or that trap on NaN, call MPI with other settings. The
// error bound and the equality of all instruction sets hold under these. Alternative considered: fesetenv, which needs
// libm; this class reads and writes one register.
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace bestride::inline kernels {

/// Restores the previous settings, including sticky exception flags. The arithmetic must be in a function call that the
/// compiler cannot inline or analyze.
class StandardArithmetic {
 public:
#if defined(__x86_64__)
  StandardArithmetic() noexcept : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~StandardArithmetic() { _mm_setcsr(static_cast<unsigned>(before_)); }
#elif defined(__aarch64__)
  StandardArithmetic() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("mrs %0, fpsr" : "=r"(flags_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~StandardArithmetic() {
    asm volatile("msr fpcr, %0" : : "r"(before_));
    asm volatile("msr fpsr, %0" : : "r"(flags_));
  }
#else
  StandardArithmetic() noexcept = default;
#endif
  StandardArithmetic(const StandardArithmetic&) = delete;
  StandardArithmetic& operator=(const StandardArithmetic&) = delete;

 private:
  [[maybe_unused]] std::uint64_t before_ = 0;
  [[maybe_unused]] std::uint64_t flags_ = 0;
};

}  // namespace bestride::inline kernels
