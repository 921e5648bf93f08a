// SPDX-License-Identifier: Apache-2.0
#include "base/float_environment.hpp"

#include <fenv.h>
#include <gtest/gtest.h>

namespace bestride {
namespace {

/// volatile: else the compiler computes the results.
volatile double zero = 0, three = 3;

class FloatEnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override { fegetenv(&before_); }
  void TearDown() override { fesetenv(&before_); }

 private:
  fenv_t before_;
};

TEST_F(FloatEnvironmentTest, NothingTrapsWithinIt) {
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_INEXACT);
  {
    const FloatEnvironment floats;
    volatile double result = 1 / zero;
    result = zero / zero;
    result = 1 / three;
    (void)result;
  }
  EXPECT_EQ(fegetexcept(), FE_DIVBYZERO | FE_INVALID | FE_INEXACT) << "the traps are enabled again";
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0) << "the application sees no flag of what was computed within";
}

TEST_F(FloatEnvironmentTest, KeepsTheFlagsThatWereSet) {
  feclearexcept(FE_ALL_EXCEPT);
  feraiseexcept(FE_OVERFLOW);
  { const FloatEnvironment floats; }
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT), FE_OVERFLOW);
}

TEST_F(FloatEnvironmentTest, KeepsTheRoundingMode) {
  fesetround(FE_UPWARD);
  {
    const FloatEnvironment floats;
    EXPECT_EQ(fegetround(), FE_UPWARD);
  }
  EXPECT_EQ(fegetround(), FE_UPWARD);
}

/// A thread computes as another one does, and afterwards as before.
TEST_F(FloatEnvironmentTest, ControlOfAnotherThread) {
  const auto third = [] { return 1 / three; };
  const double nearest = third();
  fesetround(FE_UPWARD);
  const FloatControl upward;
  const double above = third();
  ASSERT_NE(above, nearest);
  fesetround(FE_TONEAREST);
  {
    const FloatControl::Scope scope(upward);
    EXPECT_EQ(third(), above);
    const FloatControl::Scope again(upward);
    EXPECT_EQ(third(), above);
  }
  EXPECT_EQ(third(), nearest);
#if defined(__x86_64__)
  volatile double tiny = 1e-310;
  _mm_setcsr(_mm_getcsr() | 0x8040);  // denormals are zero
  const FloatControl flushing;
  _mm_setcsr(_mm_getcsr() & ~0x8040u);
  EXPECT_GT(tiny * 2, 0);
  const FloatControl::Scope scope(flushing);
  EXPECT_EQ(tiny * 2, 0);
#endif
}

}  // namespace
}  // namespace bestride
