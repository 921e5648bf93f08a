// SPDX-License-Identifier: Apache-2.0
#pragma once
// The address ranges of a process, from /proc/PID/maps.
#include <cstdint>
#include <vector>

namespace bestride::inline telemetry {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address) const noexcept { return begin <= address && address < end; }
};

/// The readable mappings, ascending; empty if they can't be read.
std::vector<AddressRange> memory_map(int pid);
/// The mapping with this address; an empty range if there is none.
AddressRange range_of(const std::vector<AddressRange>& map, std::uint64_t address) noexcept;

}  // namespace bestride::inline telemetry
