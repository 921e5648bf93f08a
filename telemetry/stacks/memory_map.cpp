// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/memory_map.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace bestride::inline telemetry {

std::vector<AddressRange> memory_map(int pid) {
  std::vector<AddressRange> map;
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(file, line);) {
    AddressRange range;
    char readable = '-';
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %c", &range.begin, &range.end, &readable) == 3 &&
        readable == 'r')
      map.push_back(range);
  }
  return map;
}

AddressRange range_of(const std::vector<AddressRange>& map, std::uint64_t address) noexcept {
  const auto after = std::upper_bound(map.begin(), map.end(), address,
                                      [](std::uint64_t a, const AddressRange& range) { return a < range.end; });
  return after != map.end() && after->contains(address) ? *after : AddressRange{};
}

}  // namespace bestride::inline telemetry
