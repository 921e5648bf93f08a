// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who is asked about this host's processors: /sys, and hwloc for what /sys does not say (a container without it, another kernel).
//
// Where the user describes a machine to hwloc (HWLOC_XMLFILE, HWLOC_SYNTHETIC, HWLOC_FSROOT) it is the other way round: every program that
// uses hwloc, the MPI library among them, then takes his word. Of processors that the description lacks /sys is still asked. Both name
// a core by its lowest processor and a NUMA domain by the operating system's number, so ranks that ask different ones understand each
// other. Alternative that lost: hwloc always. On most machines it takes longer to read the same files.
#include <span>
#include <string>

#include "model/hwloc.hpp"
#include "model/processors.hpp"

namespace bestride {

/// Where they are, for tests.
struct ProcessorSources {
  const char* sys = "/sys";
  const char* hwloc = hwloc_library;
};

template <class Known>
struct Sourced {
  Known known;
  bool by_sys_alone = true;  ///< the usual case: nobody else was asked
  std::string source;        ///< "from /sys and hwloc"; for a person, as is why hwloc says nothing if it was asked
};

/// Where a process is bound that may use the processors `allowed`. May throw std::bad_alloc.
Sourced<Binding> find_binding(std::span<const int> allowed, const ProcessorSources& sources = {});
/// How much there is on this host. May throw std::bad_alloc.
Sourced<Processors> find_processors(const ProcessorSources& sources = {});

}  // namespace bestride
