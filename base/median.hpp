// SPDX-License-Identifier: Apache-2.0
#pragma once
// The median of a set of samples.
#include <algorithm>
#include <vector>

namespace bestride {

/// The median of `values`: 0 if there are none; for an even number of values, the mean of the two middle ones.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace bestride
