// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/median_polish.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace bestride;

namespace {

class MedianPolishTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  double noise(double size) { return size * std::normal_distribution()(random_); }
  std::mt19937_64 random_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, MedianPolishTest, testing::Range<std::uint64_t>(1, 51));

/// All pairs of different nodes with row and column effects of their own.
TEST_P(MedianPolishTest, TheSumIsTheValueAndMediansAreZero) {
  const std::uint32_t size = 4 + static_cast<std::uint32_t>(random_() % 12);
  std::vector<MatrixEntry> entries;
  for (std::uint32_t row = 0; row < size; ++row)
    for (std::uint32_t column = 0; column < size; ++column)
      if (row != column && random_() % 3) entries.push_back({row, column, noise(1)});
  const MedianPolish polish = median_polish(entries, size);
  for (std::size_t i = 0; i < entries.size(); ++i)
    EXPECT_NEAR(polish.overall + polish.rows[entries[i].row] + polish.columns[entries[i].column] + polish.residuals[i],
                entries[i].value, 1e-9);
  for (std::uint32_t line = 0; line < size; ++line) {
    if (polish.row_entries[line] < 3) {
      EXPECT_EQ(polish.rows[line], 0);
    }
    if (polish.column_entries[line] < 3) {
      EXPECT_EQ(polish.columns[line], 0);
    }
  }
}

TEST_P(MedianPolishTest, ALargeEntryStaysInItsResidual) {
  constexpr std::uint32_t size = 6;
  std::vector<double> rows, columns;
  for (std::uint32_t i = 0; i < size; ++i) rows.push_back(noise(0.3)), columns.push_back(noise(0.3));
  const auto large_row = static_cast<std::uint32_t>(random_() % size), large_column = (large_row + 1) % size;
  std::vector<MatrixEntry> entries;
  for (std::uint32_t row = 0; row < size; ++row)
    for (std::uint32_t column = 0; column < size; ++column)
      if (row != column)
        entries.push_back(
            {row, column,
             rows[row] + columns[column] + noise(0.01) + (row == large_row && column == large_column ? 10.0 : 0.0)});
  const MedianPolish polish = median_polish(entries, size);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].row == large_row && entries[i].column == large_column)
      EXPECT_NEAR(polish.residuals[i], 10, 0.2);
    else
      EXPECT_NEAR(polish.residuals[i], 0, 0.2);
}

TEST_P(MedianPolishTest, ALargeRowIsInItsEffect) {
  constexpr std::uint32_t size = 5;
  const auto large = static_cast<std::uint32_t>(random_() % size);
  std::vector<MatrixEntry> rows, columns;
  for (std::uint32_t row = 0; row < size; ++row)
    for (std::uint32_t column = 0; column < size; ++column)
      if (row != column) {
        rows.push_back({row, column, 7 + noise(0.01) + (row == large ? 2.0 : 0.0)});
        columns.push_back({column, row, rows.back().value});
      }
  const MedianPolish by_row = median_polish(rows, size), by_column = median_polish(columns, size);
  EXPECT_NEAR(by_row.overall, 7, 0.1);
  for (std::uint32_t i = 0; i < size; ++i) {
    EXPECT_NEAR(by_row.rows[i], i == large ? 2 : 0, 0.1);
    EXPECT_NEAR(by_row.columns[i], 0, 0.1);
    EXPECT_NEAR(by_column.columns[i], i == large ? 2 : 0, 0.1);
  }
}

TEST(MedianPolish, NoEntries) {
  const MedianPolish polish = median_polish({}, 3);
  EXPECT_EQ(polish.overall, 0);
  EXPECT_EQ(polish.rows.size(), 3u);
}

}  // namespace
