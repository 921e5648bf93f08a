// SPDX-License-Identifier: Apache-2.0
#pragma once
// The median of samples.
#include <algorithm>
#include <vector>

namespace bestride {

/// Of at least one value; of an even number the middle of the two.
inline double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace bestride
