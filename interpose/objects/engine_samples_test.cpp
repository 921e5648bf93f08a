// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/engine_samples.hpp"

#include <gtest/gtest.h>

namespace bestride::inline interpose {
namespace {

TEST(EngineSamples, OneOfAPeriodIsMeasured) {
  EngineSamples samples;
  for (std::uint32_t i = 0; i < 3 * EngineSamples::period; ++i)
    EXPECT_EQ(samples.draw(), i % EngineSamples::period == 0 ? i / EngineSamples::period + 1 : 0) << i;
}

TEST(EngineSamples, WhatIsMeasuredCountsForAllBytes) {
  EngineSamples samples;
  EXPECT_EQ(samples.seconds(1000).own, 0);
  samples.add(1000, 100, 400);
  samples.add(3000, 300, 1600);
  EXPECT_DOUBLE_EQ(samples.seconds(8000).own, 800e-9);
  EXPECT_DOUBLE_EQ(samples.seconds(8000).library, 4000e-9);
}

/// In which the thread had to wait for a processor.
TEST(EngineSamples, ALongSampleDoesNotCount) {
  EngineSamples samples;
  samples.add(1000, 100, 400);
  samples.add(1000, 4'000'000, 400);
  samples.add(2000, 200, 8'000'000);
  EXPECT_DOUBLE_EQ(samples.seconds(1000).own, 100e-9);
  EXPECT_DOUBLE_EQ(samples.seconds(1000).library, 400e-9);
}

TEST(EngineSamples, NorDoesALongFirstOne) {
  EngineSamples samples;
  samples.add(1000, 100, 8'000'000);
  samples.add(1000, 100, 400);
  EXPECT_DOUBLE_EQ(samples.seconds(1000).library, 400e-9);
}

}  // namespace
}  // namespace bestride::inline interpose
