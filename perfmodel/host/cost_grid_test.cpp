// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/cost_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace bestride::inline perfmodel {
namespace {

/// A cost function like a machine's: a constant, bytes and blocks.
double cost(double bytes, double block) { return 2e-7 + bytes * 1e-10 + bytes / block * 3e-9; }

CostGrid full_grid() {
  CostGrid grid;
  for (int i = 0; i < bytes_points; ++i)
    for (int k = 0; k < block_points; ++k)
      grid.set(i, k, cost(static_cast<double>(bytes_at(i)), static_cast<double>(block_lengths[k])));
  return grid;
}

TEST(CostGrid, ExactOnItsPoints) {
  const CostGrid grid = full_grid();
  for (int i = 0; i < bytes_points; ++i)
    for (std::int64_t block : block_lengths) {
      const double bytes = static_cast<double>(bytes_at(i)), wanted = cost(bytes, static_cast<double>(block));
      EXPECT_NEAR(grid.at(bytes, static_cast<double>(block)) / wanted, 1, 1e-4) << bytes << " " << block;
    }
}

TEST(CostGrid, InterpolationIsMonotonicAndCloseToASumOfTerms) {
  const CostGrid grid = full_grid();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> log_bytes(6, 24), log_block(2, 12);
  for (int i = 0; i < 2000; ++i) {
    const double bytes = std::exp2(log_bytes(random)), block = std::exp2(log_block(random));
    EXPECT_NEAR(grid.at(bytes, block) / cost(bytes, block), 1, 0.16);
    EXPECT_LE(grid.at(bytes, block), grid.at(bytes * 1.1, block));
    EXPECT_GE(grid.at(bytes, block), grid.at(bytes, block * 1.1));
  }
}

TEST(CostGrid, ClampedBelowProportionalAbove) {
  const CostGrid grid = full_grid();
  EXPECT_DOUBLE_EQ(grid.at(1, 16), grid.at(64, 16));
  EXPECT_DOUBLE_EQ(grid.at(0, 16), grid.at(64, 16));
  EXPECT_DOUBLE_EQ(grid.at(4096, 1), grid.at(4096, 4));
  EXPECT_DOUBLE_EQ(grid.at(4096, 1e9), grid.at(4096, 4096));
  const double last = static_cast<double>(bytes_at(bytes_points - 1));
  EXPECT_NEAR(grid.at(last * 100, 16) / grid.at(last, 16), 100, 0.01);
}

TEST(Fill, KeepsMeasurementsAndInterpolatesTheRest) {
  CostGrid sparse;
  for (int i : {1, 3, 5, 7})
    for (int k : {1, 4, 6})
      sparse.set(i, k, cost(static_cast<double>(bytes_at(i)), static_cast<double>(block_lengths[k])));
  const CostGrid before = sparse;
  ASSERT_TRUE(fill(&sparse));
  EXPECT_EQ(sparse.measured(), bytes_points * block_points);
  for (int i : {1, 3, 5, 7})
    for (int k : {1, 4, 6}) EXPECT_EQ(sparse.log_seconds[i][k], before.log_seconds[i][k]);
  EXPECT_NEAR(sparse.at(4096 * 4, 256) / cost(4096 * 4, 256), 1, 0.25);
  EXPECT_NEAR(sparse.at(16 << 20, 64) / sparse.at(1 << 20, 64), 16, 0.01)
      << "above the last measured point: proportional";
}

TEST(Fill, AFewPointsOfARatioSuffice) {
  const CostGrid like = full_grid();
  CostGrid twice;
  twice.set(3, 2, 2 * cost(static_cast<double>(bytes_at(3)), 16));
  ASSERT_TRUE(fill(&twice, &like));
  for (int i = 0; i < bytes_points; ++i)
    for (int k = 0; k < block_points; ++k) EXPECT_NEAR(twice.log_seconds[i][k] - like.log_seconds[i][k], 1, 1e-4);
  CostGrid none;
  ASSERT_TRUE(fill(&none, &like));
  EXPECT_EQ(none.log_seconds, like.log_seconds);
  CostGrid nothing;
  EXPECT_FALSE(fill(&nothing));
}

TEST(Axis, WeightsMatchTheGeneralFormula) {
  for (double block : {5.0, 12.0, 24.0, 48.0, 100.0, 500.0, 2000.0}) {
    const AxisPosition at = on_block_axis(block);
    const double low = static_cast<double>(block_lengths[at.index]),
                 high = static_cast<double>(block_lengths[at.index + 1]);
    EXPECT_NEAR(at.weight, std::log2(block / low) / std::log2(high / low), 1e-5) << block;
  }
}

TEST(CostCurve, FollowsAStepAtAPowerOfTwo) {
  const auto leaping = [](double bytes) { return bytes <= 8192 ? 3e-7 : 2e-6 + bytes * 1e-10; };
  CostCurve curve;
  for (int i = 0; i < curve_points; ++i) curve.set(i, leaping(static_cast<double>(curve_bytes_at(i))));
  for (int i = 0; i < curve_points; ++i) {
    const double bytes = static_cast<double>(curve_bytes_at(i));
    EXPECT_NEAR(curve.at(bytes) / leaping(bytes), 1, 1e-3) << bytes;
  }
  for (double bytes : {100.0, 5000.0, 8000.0, 8192.0, 8320.0, 9000.0, 16000.0, 3e6})
    EXPECT_NEAR(curve.at(bytes) / leaping(bytes), 1, 0.05) << bytes;
  EXPECT_NEAR(curve.at(1e9) / curve.at(1e8), 10, 0.01);
}

TEST(Smooth, RemovesNonMonotonicNoise) {
  CostGrid grid = full_grid(), noisy = grid;
  noisy.set(2, 3, 1e-3);
  smooth(&noisy);
  EXPECT_EQ(noisy.log_seconds[2][3], grid.log_seconds[3][3]);
  for (int i = 0; i < bytes_points; ++i)
    for (int k = 0; k < block_points; ++k)
      if (i != 2 || k != 3) {
        EXPECT_EQ(noisy.log_seconds[i][k], grid.log_seconds[i][k]);
      }
}

}  // namespace
}  // namespace bestride::inline perfmodel
