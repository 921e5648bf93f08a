// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `bestride calibrate` measured of collectives: the links, and the variants of each collective at some sizes, on
// some numbers of nodes and ranks. The section `collectives` of the profile file (docs/profile.md).
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "perfmodel/collective/costs.hpp"

namespace bestride::inline perfmodel {

/// The measured sizes: 4 KiB to 16 MiB by factors of 4, as CollectiveShape::bytes.
inline constexpr int collective_sizes = 7;
constexpr std::int64_t collective_bytes_at(int i) noexcept { return std::int64_t{4096} << (2 * i); }

/// One time of LinkCosts and its name in the file.
struct LinkField {
  std::string_view name;
  double LinkCosts::*value;
};
inline constexpr std::array<LinkField, 6> link_fields{{{"latency", &LinkCosts::latency_s},
                                                       {"overhead", &LinkCosts::overhead_s},
                                                       {"wire_byte", &LinkCosts::wire_byte_s},
                                                       {"stream_byte", &LinkCosts::stream_byte_s},
                                                       {"copy_byte", &LinkCosts::copy_byte_s},
                                                       {"node_sync", &LinkCosts::node_sync_s}}};

/// Bounds of LinkCosts::piece_bytes if it is not 0.
inline constexpr std::int64_t min_piece_bytes = 4096, max_piece_bytes = 4 << 20;

/// One value for each collective, form (0 nonblocking, 1 blocking) and size.
template <class Value>
using CollectiveTable = std::array<std::array<std::array<Value, collective_sizes>, 2>, collective_count>;

/// The measurements of one communicator.
struct CollectiveSetting {
  static constexpr float unmeasured = std::numeric_limits<float>::quiet_NaN();
  CollectiveSetting() noexcept {
    for (auto& collective : hierarchical)
      for (auto& form : collective) form.fill(unmeasured);
    library = noise = hierarchical;
  }
  /// The shape of a point.
  CollectiveShape shape(Collective what, bool blocking, int size) const noexcept {
    return {.what = what,
            .bytes = collective_bytes_at(size),
            .nodes = nodes,
            .ranks = ranks,
            .max_ranks_per_node = max_ranks_per_node,
            .min_ranks_per_node = min_ranks_per_node,
            .ring_entries = ring_entries,
            .blocking = blocking};
  }
  bool same_place(const CollectiveSetting& other) const noexcept {
    return nodes == other.nodes && ranks == other.ranks && max_ranks_per_node == other.max_ranks_per_node &&
           min_ranks_per_node == other.min_ranks_per_node && ring_entries == other.ring_entries;
  }
  int nodes = 1, ranks = 1, max_ranks_per_node = 1, min_ranks_per_node = 0,
      ring_entries = 1;                 ///< as in CollectiveShape
  CollectiveTable<float> hierarchical;  ///< seconds, NaN: not measured
  CollectiveTable<float> library;
  CollectiveTable<float> noise;  ///< relative error of the ratio of hierarchical to library; NaN: unknown
};

struct CollectiveMeasurements {
  /// The number of settings that are sent with a communicator (CollectiveParameters). If there are more, the oldest is
  /// dropped.
  static constexpr std::size_t max_settings = 3;
  static constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();
  LinkCosts link{unmeasured, unmeasured, unmeasured, unmeasured, unmeasured, unmeasured};
  std::vector<CollectiveSetting> settings;  ///< oldest first

  bool any() const noexcept;
  /// The measured values, with built-in values for the others. The rate of one stream is never higher than that of all.
  LinkCosts filled_link() const noexcept;
  /// Values of `newer` replace the present ones. May throw std::bad_alloc.
  void merge(const CollectiveMeasurements& newer);
};

}  // namespace bestride::inline perfmodel
