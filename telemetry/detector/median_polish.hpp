// SPDX-License-Identifier: Apache-2.0
#pragma once
// Median polish of a sparse matrix: value = overall + row effect + column effect + residual.
//
// Source: Tukey, Exploratory Data Analysis (1977), chapter 11. Single large entries do not change a median, so a slow
// link stays in its residual, and a slow sender in the effect of its row.
#include <cstdint>
#include <span>
#include <vector>

namespace bestride::inline telemetry {

struct MatrixEntry {
  std::uint32_t row = 0, column = 0;
  double value = 0;
};

struct MedianPolish {
  double overall = 0;
  /// The effects of the rows and of the columns. The effect of one with fewer than `least` entries is 0: a median of
  /// two entries takes half of each of them. The median of the other effects is 0.
  std::vector<double> rows, columns;
  std::vector<std::uint32_t> row_entries, column_entries;
  std::vector<double> residuals;  ///< by entry
};

/// `entries`: at most one for each place, rows and columns below `size`. O(entries log entries).
MedianPolish median_polish(std::span<const MatrixEntry> entries, std::uint32_t size, std::uint32_t least = 3);

}  // namespace bestride::inline telemetry
