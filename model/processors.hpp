// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host's processors, and the core and NUMA domain that this process is bound to, as the kernel reports them in
// /sys. If /sys lacks them, processor_sources.hpp asks other sources.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bestride::inline model {

/// The numbers of a list in the kernel's format, such as "0-3,8": ascending, each once. Malformed text ends the list.
/// At most 65536 numbers. May throw std::bad_alloc.
std::vector<int> parse_cpu_list(std::string_view text);

/// What a process is bound to. No value: the core (or domain) of its first processor is unknown. -1: no core (or
/// domain) contains all processors that it may use.
struct Binding {
  std::optional<int> domain;  ///< NUMA domain, in the operating system's numbering
  std::optional<int> core;    ///< named by its lowest processor
};

/// The binding of a process that may use the processors `allowed`. `sys`: the directory to read, for tests. May throw
/// std::bad_alloc.
Binding binding_of(std::span<const int> allowed, const std::string& sys = "/sys");
/// The processors that the calling thread may use; empty if the kernel does not report them. May throw std::bad_alloc.
std::vector<int> allowed_processors();

/// True if this host is a virtual machine. Its processors may then migrate between physical ones, and caches that /sys
/// reports as shared may not be shared. Known only on x86; elsewhere false.
bool in_virtual_machine() noexcept;

/// The number of each on this host; no value: unknown.
struct Processors {
  std::optional<int> threads;  ///< hardware threads that are online
  std::optional<int> cores;
  std::optional<int> domains;
};
/// May throw std::bad_alloc.
Processors processors_here(const std::string& sys = "/sys");

/// The group of nodes that this host belongs to, if the launcher names the switches above it. Slurm (srun(1)):
/// SLURM_TOPOLOGY_ADDR contains names from the highest switch down to the host, separated by dots, and
/// SLURM_TOPOLOGY_ADDR_PATTERN their kinds, "switch.switch.node". Hosts below the same lowest switch get the same
/// number, others almost certainly another one: it is a 31-bit hash. -1 if no switch is named. Either argument may be
/// null.
int group_of_address(const char* address, const char* pattern) noexcept;

}  // namespace bestride::inline model
