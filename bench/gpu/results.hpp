// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results for each goal, as a table and as JSON. On the stand-in driver this class prints no figures, only whether
// the bytes were right.
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/gpu.hpp"

namespace gpu {

/// A figure is a ratio to a value that was measured in the same run.
struct Row {
  std::string goal;
  std::string name;
  double figure = 0;
  double wanted = 0;                                ///< 0: only reported
  bool at_least = true;                             ///< whether `wanted` is a minimum; otherwise a maximum
  std::vector<std::pair<std::string, double>> raw;  ///< times in microseconds, rates in GB/s, counts
  bool checked = false;                             ///< the bytes were compared
  bool right = true;
};

class Results {
 public:
  explicit Results(const Gpu& gpu) : gpu_(gpu) {}
  void add(Row row);
  /// Notes a case that was not measured, and the reason.
  void leave_out(const std::string& what, const std::string& why);
  bool all_right() const;
  /// The worst row of each goal, or all rows with `everything`.
  std::string table(bool everything) const;
  std::string json() const;

 private:
  bool met(const Row& row) const;
  const Gpu& gpu_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::string>> left_out_;
};

}  // namespace gpu
