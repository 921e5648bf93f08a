// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bestride::test {

/// How often a test with random input is repeated: `times`, but a fifth of it under a sanitizer, which makes each
/// repetition five to ten times slower. The release build tests the results; a sanitizer still finds an error that
/// occurs once in a few hundred repetitions.
template <class Integer>
constexpr Integer repetitions(Integer times) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (times + 4) / 5;
#else
  return times;
#endif
}

}  // namespace bestride::test
