// SPDX-License-Identifier: Apache-2.0
#pragma once
// RailSamples: how long the nodes of a job take to exchange the same bytes, with and without a NIC for each local rank,
// and whether rails are worth using. Does not use MPI or a clock.
#include <optional>
#include <string_view>
#include <vector>

namespace bestride::inline perfmodel {

/// The speedup from which rails are used. Useful rails have a speedup close to their number, up to what a host can
/// deliver. A smaller one comes from an MPI library that uses several NICs itself, from NICs that share a link, or from
/// variation between two starts of a job; and with rails a rank that sends alone has only one NIC, which a smaller gain
/// may not compensate.
inline constexpr double rails_margin = 1.15;

/// Seconds for each node; add() appends one exchange of all nodes.
struct RailSamples {
  std::vector<std::vector<double>> without, with;
  /// "0.21 0.22": the seconds of each node, in order. Returns false and adds nothing if the text is not a list of
  /// positive numbers or has another number of nodes.
  bool add(bool rails, std::string_view seconds);
};

/// The speedup, with rails, of the node that gains least: the median time without rails over the median time with
/// rails. nullopt if there are no exchanges of one kind. May throw std::bad_alloc.
std::optional<double> rails_gain(const RailSamples& samples);

inline bool rails_are_faster(const RailSamples& samples) { return rails_gain(samples).value_or(0) >= rails_margin; }

}  // namespace bestride::inline perfmodel
