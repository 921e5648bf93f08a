// SPDX-License-Identifier: Apache-2.0
#include "model/processor_groups.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "model/processors.hpp"
#include "model/sys_file.hpp"

namespace bestride::inline model {
namespace {

/// The lowest processor of `group` if it contains all of `processors`, else -1. Both are sorted.
int name_of(const std::vector<int>& group, std::span<const int> processors) {
  return !group.empty() && std::includes(group.begin(), group.end(), processors.begin(), processors.end()) ? group[0]
                                                                                                           : -1;
}

std::string folder_of(int processor, const std::string& sys) {
  return sys + "/devices/system/cpu/cpu" + std::to_string(processor);
}

std::vector<int> last_level_cache(int processor, const std::string& sys) {
  const std::string folder = folder_of(processor, sys) + "/cache/";
  int last = 0;
  std::string shared;
  for (const std::string& entry : sys_names(folder)) {
    if (!entry.starts_with("index") || sys_line(folder + entry + "/type") == "Instruction") continue;
    const int level = std::atoi(sys_line(folder + entry + "/level").c_str());
    if (level <= last) continue;
    last = level;
    shared = sys_line(folder + entry + "/shared_cpu_list");
  }
  return parse_cpu_list(shared);
}

std::vector<int> numa_domain(int processor, const std::string& sys) {
  // The kernel links each processor to its domain: cpu0/node1.
  for (const std::string& entry : sys_names(folder_of(processor, sys)))
    if (entry.starts_with("node") && entry.size() > 4 && entry[4] >= '0' && entry[4] <= '9')
      return parse_cpu_list(sys_line(sys + "/devices/system/node/" + entry + "/cpulist"));
  return {};
}

std::vector<int> socket_of(int processor, const std::string& sys) {
  const std::string folder = folder_of(processor, sys) + "/topology/";
  const std::vector<int> socket = parse_cpu_list(sys_line(folder + "package_cpus_list"));
  return socket.empty() ? parse_cpu_list(sys_line(folder + "core_siblings_list")) : socket;  // before Linux 5.3
}

}  // namespace

ProcessorGroups groups_of(std::span<const int> allowed, const std::string& sys) {
  if (allowed.empty()) return {};
  return {.cache = name_of(last_level_cache(allowed[0], sys), allowed),
          .domain = name_of(numa_domain(allowed[0], sys), allowed),
          .socket = name_of(socket_of(allowed[0], sys), allowed)};
}

Distance distance_between(const ProcessorGroups& one, const ProcessorGroups& other) noexcept {
  const auto same = [](int a, int b) noexcept { return a >= 0 && a == b; };
  return same(one.cache, other.cache)     ? Distance::cache
         : same(one.domain, other.domain) ? Distance::domain
         : same(one.socket, other.socket) ? Distance::socket
                                          : Distance::node;
}

std::optional<std::pair<int, int>> processors_at(Distance distance, std::span<const int> allowed,
                                                 const std::string& sys) {
  if (allowed.empty()) return std::nullopt;
  const int first = allowed[0];
  const ProcessorGroups place = groups_of({&first, 1}, sys);
  std::optional<std::pair<int, int>> same_core;
  for (const int other : allowed.subspan(1)) {
    if (distance_between(place, groups_of({&other, 1}, sys)) != distance) continue;
    const int both[] = {first, other};
    if (const auto core = binding_of(both, sys).core; !core || *core < 0) return std::pair(first, other);
    if (!same_core) same_core = {first, other};
  }
  return same_core;
}

}  // namespace bestride::inline model
