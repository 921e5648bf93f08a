// SPDX-License-Identifier: Apache-2.0
#include "model/processors.hpp"

#include <sched.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <set>

#include "base/fnv1a.hpp"
#include "model/sys_file.hpp"

namespace bestride::inline model {
namespace {

constexpr int max_processors = 1 << 16;

bool holds_all(const std::vector<int>& set, std::span<const int> some) {
  return std::all_of(some.begin(), some.end(),
                     [&set](int one) { return std::binary_search(set.begin(), set.end(), one); });
}

/// The processors of the core that contains processor `cpu`.
std::vector<int> core_with(int cpu, const std::string& sys) {
  const std::string folder = sys + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  std::vector<int> core = parse_cpu_list(sys_line(folder + "core_cpus_list"));
  if (core.empty()) core = parse_cpu_list(sys_line(folder + "thread_siblings_list"));  // before Linux 5.3
  return core;
}

std::optional<int> counted(std::size_t number) {
  return number > 0 ? std::optional(static_cast<int>(number)) : std::nullopt;
}

std::vector<int> domains_on_line(const std::string& sys) {
  return parse_cpu_list(sys_line(sys + "/devices/system/node/online"));
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::set<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc() || first < 0) break;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc() || last < first || last - first >= max_processors) break;
    for (int number = first; number - first <= last - first && numbers.size() < max_processors; ++number) {
      numbers.insert(number);
      if (number == last) break;
    }
    if (parsed.ptr == end || *parsed.ptr != ',') break;
    at = parsed.ptr + 1;
  }
  return {numbers.begin(), numbers.end()};
}

Binding binding_of(std::span<const int> allowed, const std::string& sys) {
  Binding binding;
  if (allowed.empty()) return binding;
  if (const std::vector<int> core = core_with(allowed[0], sys); !core.empty())
    binding.core = holds_all(core, allowed) ? core[0] : -1;
  for (const int domain : domains_on_line(sys)) {
    const std::vector<int> processors =
        parse_cpu_list(sys_line(sys + "/devices/system/node/node" + std::to_string(domain) + "/cpulist"));
    if (holds_all(processors, allowed.first(1))) binding.domain = holds_all(processors, allowed) ? domain : -1;
  }
  return binding;
}

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  // The kernel refuses a set that is smaller than its own.
  for (int most = 1024; most <= max_processors; most *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    std::vector<cpu_set_t> set((bytes + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    if (sched_getaffinity(0, bytes, set.data()) == 0) {
      for (int cpu = 0; cpu < most; ++cpu)
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.data())) allowed.push_back(cpu);
      return allowed;
    }
    if (errno != EINVAL) return allowed;
  }
  return allowed;
}

bool in_virtual_machine() noexcept {
#if defined __x86_64__
  constexpr unsigned hypervisor = 1u << 31;  // CPUID leaf 1, ECX: reserved for hypervisors, 0 on hardware
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & hypervisor) != 0;
#else
  return false;
#endif
}

Processors processors_here(const std::string& sys) {
  Processors here;
  const std::vector<int> threads = parse_cpu_list(sys_line(sys + "/devices/system/cpu/online"));
  std::set<int> cores;
  for (const int thread : threads)
    if (const std::vector<int> core = core_with(thread, sys); !core.empty()) cores.insert(core[0]);
  here.threads = counted(threads.size());
  here.cores = counted(cores.size());
  here.domains = counted(domains_on_line(sys).size());
  return here;
}

int group_of_address(const char* address, const char* pattern) noexcept {
  const std::string_view text = address ? address : "";
  const std::size_t end = text.rfind('.');
  // Without the pattern, a host's full name could be taken for a host below a switch.
  if (!pattern || !std::string_view(pattern).starts_with("switch") || end == std::string_view::npos || end == 0)
    return -1;
  return static_cast<int>((fnv1a(text.substr(0, end)) >> 33) & 0x7fffffff);
}

}  // namespace bestride::inline model
