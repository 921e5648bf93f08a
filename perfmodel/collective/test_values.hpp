// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes, links and measured settings for tests of the choice for collectives.
#include "perfmodel/collective/choice.hpp"

namespace bestride::inline perfmodel {

using enum Collective;
inline constexpr std::int64_t KiB = 1024, MiB = 1024 * 1024;
inline constexpr Collective all_collectives[] = {allgather, allgatherv, broadcast, reduce_scatter, allreduce,
                                                 reduce,    gather,     scatter,   alltoall};

inline CollectiveShape on(Collective what, std::int64_t bytes, int nodes, int per_node, bool cyclic = false,
                          bool blocking = true) {
  return {.what = what,
          .bytes = bytes,
          .nodes = nodes,
          .ranks = nodes * per_node,
          .max_ranks_per_node = per_node,
          .ring_entries = cyclic ? per_node : 1,
          .blocking = blocking};
}

/// Ethernet of `mbit` Mbit/s.
inline LinkCosts ethernet(double mbit) {
  LinkCosts link = LinkCosts::built_in();
  link.wire_byte_s = link.stream_byte_s = 8 / (0.956e6 * mbit);
  return link;
}

/// A setting in which the hierarchy and the library took these multiples of their predicted times.
inline CollectiveMeasurements measured_as(double hierarchical, double library, int nodes = 2, int per_node = 2,
                                          Collective what = allgather) {
  CollectiveMeasurements measured;
  CollectiveSetting setting;
  setting.nodes = nodes, setting.ranks = nodes * per_node, setting.max_ranks_per_node = per_node;
  for (int size = 0; size < collective_sizes; size += 2) {
    const CollectiveShape shape = setting.shape(what, true, size);
    const auto at = static_cast<std::size_t>(size);
    setting.hierarchical[static_cast<std::size_t>(what)][1][at] =
        static_cast<float>(hierarchical * hierarchical_cost(shape, LinkCosts::built_in()).seconds);
    setting.library[static_cast<std::size_t>(what)][1][at] =
        static_cast<float>(library * library_cost(shape, LinkCosts::built_in()).seconds);
  }
  measured.settings.push_back(setting);
  return measured;
}

/// On Ethernet of `mbit` Mbit/s, a setting in which every blocking point of the library took three times its predicted
/// time, and the hierarchy was faster by the factor `faster`.
inline CollectiveMeasurements everywhere_faster(double faster, float noise, int nodes, int per_node, double mbit) {
  CollectiveMeasurements measured;
  measured.link = ethernet(mbit);
  CollectiveSetting& setting = measured.settings.emplace_back();
  setting.nodes = nodes, setting.ranks = nodes * per_node, setting.max_ranks_per_node = per_node;
  for (Collective what : all_collectives)
    for (int size = 0; size < collective_sizes; ++size) {
      const auto row = static_cast<std::size_t>(what), at = static_cast<std::size_t>(size);
      const double library = 3 * library_cost(setting.shape(what, true, size), measured.link).seconds;
      setting.library[row][1][at] = static_cast<float>(library);
      setting.hierarchical[row][1][at] = static_cast<float>(library / faster);
      setting.noise[row][1][at] = noise;
    }
  return measured;
}

}  // namespace bestride::inline perfmodel
