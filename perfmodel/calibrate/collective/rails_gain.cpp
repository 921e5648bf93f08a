// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/rails_gain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

#include "base/median.hpp"

namespace bestride::inline perfmodel {

bool RailSamples::add(bool rails, std::string_view seconds) {
  std::vector<double> nodes;
  std::istringstream in{std::string(seconds)};
  for (std::string word; in >> word;) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (*end || !std::isfinite(value) || !(value > 0)) return false;
    nodes.push_back(value);
  }
  const std::vector<std::vector<double>>& known = without.empty() ? with : without;
  if (nodes.empty() || (!known.empty() && known.size() != nodes.size())) return false;
  std::vector<std::vector<double>>& all = rails ? with : without;
  all.resize(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) all[node].push_back(nodes[node]);
  return true;
}

std::optional<double> rails_gain(const RailSamples& samples) {
  if (samples.without.empty() || samples.with.empty()) return std::nullopt;
  double least = INFINITY;
  for (std::size_t node = 0; node < samples.without.size(); ++node)
    least = std::min(least, median_of(samples.without[node]) / median_of(samples.with[node]));
  return least;
}

}  // namespace bestride::inline perfmodel
