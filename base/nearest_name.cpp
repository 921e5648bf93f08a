// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.hpp"

#include <algorithm>

namespace bestride {
namespace {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates, int max_edits) {
  std::string nearest;
  int best = max_edits + 1;
  for (const std::string& candidate : candidates)
    if (const int distance = edit_distance(name, candidate); distance < best) best = distance, nearest = candidate;
  return nearest;
}

}  // namespace bestride
