// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProcessorGroups: the last-level cache, NUMA domain and socket that all processors of a process belong to, from /sys.
// The distance between two processes on one host follows from their groups.
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "model/distance.hpp"

namespace bestride::inline model {

/// Each group of processors is named by its lowest processor. -1: no group contains all processors of the process, or
/// it is not known.
struct ProcessorGroups {
  int cache = -1;
  int domain = -1;
  int socket = -1;

  bool known() const noexcept { return cache >= 0 || domain >= 0 || socket >= 0; }
  bool operator==(const ProcessorGroups&) const = default;
};

/// The groups of a process that may use the processors `allowed`. `sys`: the directory to read, for tests. May throw
/// std::bad_alloc.
ProcessorGroups groups_of(std::span<const int> allowed, const std::string& sys = "/sys");

/// cache, domain, socket or node.
Distance distance_between(const ProcessorGroups& one, const ProcessorGroups& other) noexcept;

/// Two of the processors `allowed` at exactly this distance (cache, domain or socket), on different cores if there are
/// such; no value: there are none. May throw std::bad_alloc.
std::optional<std::pair<int, int>> processors_at(Distance distance, std::span<const int> allowed,
                                                 const std::string& sys = "/sys");

}  // namespace bestride::inline model
