// SPDX-License-Identifier: Apache-2.0
#pragma once
// The application may enable floating-point traps or read the exception flags. So the library computes its predictions
// within a FloatEnvironment scope.
#include <cfenv>

namespace bestride {

/// Within its scope no floating-point operation traps. The destructor restores the flags and the traps.
class FloatEnvironment {
 public:
  FloatEnvironment() noexcept { std::feholdexcept(&before_); }
  ~FloatEnvironment() { std::fesetenv(&before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace bestride
