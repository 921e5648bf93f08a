// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/median_polish.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr int most_sweeps = 10;
constexpr double converged = 1e-6;

/// Moves the median of the residuals of each line into its effect. Returns the largest change.
double sweep_lines(const std::vector<std::vector<std::uint32_t>>& lines, std::uint32_t least,
                   std::vector<double>& effects, std::vector<double>& residuals) {
  double change = 0;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    if (lines[line].size() < least) continue;
    std::vector<double> values;
    for (const std::uint32_t entry : lines[line]) values.push_back(residuals[entry]);
    const double median = median_of(std::move(values));
    for (const std::uint32_t entry : lines[line]) residuals[entry] -= median;
    effects[line] += median;
    change = std::max(change, std::abs(median));
  }
  return change;
}

/// Moves the median of the effects into `overall`. Lines that are too short have none, so it goes into their residuals.
void center_effects(const std::vector<std::vector<std::uint32_t>>& lines, std::uint32_t least,
                    std::vector<double>& effects, std::vector<double>& residuals, double& overall) {
  std::vector<double> values;
  for (std::size_t line = 0; line < lines.size(); ++line)
    if (lines[line].size() >= least) values.push_back(effects[line]);
  const double median = median_of(std::move(values));
  overall += median;
  for (std::size_t line = 0; line < lines.size(); ++line)
    if (lines[line].size() >= least)
      effects[line] -= median;
    else
      for (const std::uint32_t entry : lines[line]) residuals[entry] -= median;
}

}  // namespace

MedianPolish median_polish(std::span<const MatrixEntry> entries, std::uint32_t size, std::uint32_t least) {
  MedianPolish result;
  result.rows.assign(size, 0);
  result.columns.assign(size, 0);
  std::vector<std::vector<std::uint32_t>> rows(size), columns(size);
  std::vector<double> values;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    rows[entries[i].row].push_back(i);
    columns[entries[i].column].push_back(i);
    values.push_back(entries[i].value);
  }
  for (const auto& row : rows) result.row_entries.push_back(static_cast<std::uint32_t>(row.size()));
  for (const auto& column : columns) result.column_entries.push_back(static_cast<std::uint32_t>(column.size()));
  result.overall = median_of(values);
  for (double& value : values) value -= result.overall;
  for (int i = 0; i < most_sweeps; ++i) {
    double change = sweep_lines(rows, least, result.rows, values);
    center_effects(rows, least, result.rows, values, result.overall);
    change = std::max(change, sweep_lines(columns, least, result.columns, values));
    center_effects(columns, least, result.columns, values, result.overall);
    if (change < converged) break;
  }
  result.residuals = std::move(values);
  return result;
}

}  // namespace bestride::inline telemetry
