// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host's processors, and which core and NUMA domain this process is bound to, as the kernel tells it in /sys. Where it does not,
// others are asked: processor_sources.hpp.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bestride {

/// The numbers of a kernel's list, "0-3,8": ascending, each once. Anything malformed ends the list. At most 65536 numbers. May throw
/// std::bad_alloc.
std::vector<int> parse_cpu_list(std::string_view text);

/// What a process is bound to. Nothing: of the first of its processors no core, or domain, is known. -1: none holds every processor that it
/// may use.
struct Binding {
  std::optional<int> domain;  ///< NUMA domain, as the operating system numbers it
  std::optional<int> core;    ///< by its lowest processor
};

/// Where a process is bound that may use the processors `allowed`. `sys`: the folder to read, for tests. May throw std::bad_alloc.
Binding binding_of(std::span<const int> allowed, const std::string& sys = "/sys");
/// The processors the calling thread may use; none if the kernel does not say. May throw std::bad_alloc.
std::vector<int> allowed_processors();

/// How much there is on this host; nothing: not known.
struct Processors {
  std::optional<int> threads;  ///< hardware threads that are on line
  std::optional<int> cores;
  std::optional<int> domains;
};
/// May throw std::bad_alloc.
Processors processors_here(const std::string& sys = "/sys");

/// The group of nodes this host is in, where the launcher names the switches above it. Slurm (srun(1)): SLURM_TOPOLOGY_ADDR has names
/// from the highest switch down to the host, with dots between, SLURM_TOPOLOGY_ADDR_PATTERN what they are, "switch.switch.node". Hosts under
/// the same lowest switch get the same number, others almost certainly another: it is 31 bits of a hash. -1 if no switch is named.
/// Either may be null.
int group_of_address(const char* address, const char* pattern) noexcept;

}  // namespace bestride
