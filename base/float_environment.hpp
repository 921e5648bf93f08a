// SPDX-License-Identifier: Apache-2.0
#pragma once
// The application may enable floating-point traps or read the exception flags. So the library computes its predictions
// within a FloatEnvironment scope.
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace bestride {

/// Within its scope no floating-point operation traps. The destructor restores the flags and the traps.
///
/// On x86-64 only the state of the SSE unit (MXCSR) is saved, because the library computes nothing on the x87 unit
/// (long double): 11 ns instead of 131 for feholdexcept() and fesetenv().
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  FloatEnvironment() noexcept : before_(_mm_getcsr()) {
    _mm_setcsr((before_ & ~static_cast<unsigned>(_MM_EXCEPT_MASK)) | _MM_MASK_MASK);
  }
  ~FloatEnvironment() { _mm_setcsr(before_); }
#else
  FloatEnvironment() noexcept { std::feholdexcept(&before_); }
  ~FloatEnvironment() { std::fesetenv(&before_); }
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned before_;
#else
  std::fenv_t before_;
#endif
};

/// How a thread computes: rounding mode, treatment of denormal numbers, traps. On x86-64 only of the SSE unit.
class FloatControl {
 public:
  /// Of the calling thread.
#if defined(__x86_64__)
  FloatControl() noexcept : control_(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_MASK)) {}
#else
  FloatControl() noexcept { std::fegetenv(&control_); }
#endif

  /// Within its scope the calling thread computes in this way. Cheap if it does anyway.
  class Scope {
   public:
#if defined(__x86_64__)
    explicit Scope(const FloatControl& wanted) noexcept : before_(_mm_getcsr()) {
      const unsigned changed = before_ ^ wanted.control_;
      changed_ = (changed & ~static_cast<unsigned>(_MM_EXCEPT_MASK)) != 0;
      if (changed_) _mm_setcsr(wanted.control_);
    }
    ~Scope() {
      if (changed_) _mm_setcsr(before_);
    }
#else
    explicit Scope(const FloatControl& wanted) noexcept {
      std::fegetenv(&before_);
      std::fesetenv(&wanted.control_);
    }
    ~Scope() { std::fesetenv(&before_); }
#endif
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
#if defined(__x86_64__)
    unsigned before_;
    bool changed_;
#else
    std::fenv_t before_;
#endif
  };

 private:
#if defined(__x86_64__)
  unsigned control_;
#else
  std::fenv_t control_;
#endif
};

}  // namespace bestride
