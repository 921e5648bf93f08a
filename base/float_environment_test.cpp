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

}  // namespace
}  // namespace bestride
