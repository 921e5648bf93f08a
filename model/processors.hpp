// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host's processors, and which core and NUMA domain this process is bound to, as the kernel tells it in /sys.
//
// Alternative that lost: hwloc. It reads the same files for the three facts needed here; the preloaded object must need nothing but
// libc, and a library opened at run time may be another version than the application's own, in the same process.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bestride {

/// The numbers of a kernel's list, "0-3,8": ascending, each once. Anything malformed ends the list. At most 65536 numbers. May throw
/// std::bad_alloc.
std::vector<int> parse_cpu_list(std::string_view text);

/// What a process is bound to.
struct Binding {
  int domain = -1;  ///< NUMA domain that holds every processor it may use; -1: none, or not known
  int core = -1;    ///< likewise the core, by its lowest processor: numbered on this host
};

/// Where a process is bound that may use the processors `allowed`. `sys`: the folder to read, for tests. May throw std::bad_alloc.
Binding binding_of(std::span<const int> allowed, const std::string& sys = "/sys");
/// The processors the calling thread may use; none if the kernel does not say. May throw std::bad_alloc.
std::vector<int> allowed_processors();

/// How much there is on this host; 0: not known.
struct Processors {
  int threads = 0;  ///< hardware threads that are on line
  int cores = 0;
  int domains = 0;
};
/// May throw std::bad_alloc.
Processors processors_here(const std::string& sys = "/sys");

/// The group of nodes this host is in, where the launcher names the switches above it. Slurm (srun(1)): SLURM_TOPOLOGY_ADDR has names
/// from the highest switch down to the host, with dots between, SLURM_TOPOLOGY_ADDR_PATTERN what they are, "switch.switch.node". Hosts under
/// the same lowest switch get the same number, others almost certainly another: it is 31 bits of a hash. -1 if no switch is named.
/// Either may be null.
int group_of_address(const char* address, const char* pattern) noexcept;

}  // namespace bestride
