// SPDX-License-Identifier: Apache-2.0
#pragma once
// RailSamples: how long the nodes of a job take to exchange the same bytes, with a NIC for each local rank and without, and whether that
// makes rails worth having. Knows no MPI and no clock.
#include <optional>
#include <string_view>
#include <vector>

namespace bestride {

/// Rails that are worth having gain as many times as there are of them, up to what a host can feed; what gains less than this is an MPI library
/// that uses several NICs by itself, NICs that share a link behind them, or what one start of a job differs from the next. And a rank that sends
/// alone has one NIC from then on.
inline constexpr double rails_margin = 1.15;

/// Seconds by node; what is added holds one exchange more, of all nodes.
struct RailSamples {
  std::vector<std::vector<double>> without, with;
  /// "0.21 0.22": of each node in order. False, and nothing is added, where that is no list of positive numbers, or of another number of nodes.
  bool add(bool rails, std::string_view seconds);
};

/// How many times as fast the node is with rails that gains least by them: the medians of its exchanges, one over the other. Nothing where there
/// are no exchanges of either kind. May throw std::bad_alloc.
std::optional<double> rails_gain(const RailSamples& samples);

inline bool rails_are_faster(const RailSamples& samples) { return rails_gain(samples).value_or(0) >= rails_margin; }

}  // namespace bestride
