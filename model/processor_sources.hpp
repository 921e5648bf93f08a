// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sources of information about this host's processors: /sys, and hwloc for what /sys does not contain (for example
// in a container without it, or with another kernel).
//
// If the user describes a machine to hwloc (HWLOC_XMLFILE, HWLOC_SYNTHETIC, HWLOC_FSROOT), hwloc comes first, because
// all programs that use hwloc, including the MPI library, then use that description; /sys is asked about processors
// that the description lacks. Both sources name a core by its lowest processor and a NUMA domain by the operating
// system's number, so ranks that use different sources get consistent names. Alternative considered: hwloc always,
// which on most machines reads the same files in more time.
#include <span>
#include <string>

#include "model/hwloc.hpp"
#include "model/processors.hpp"

namespace bestride::inline model {

/// The locations of the sources, for tests.
struct ProcessorSources {
  const char* sys = "/sys";
  const char* hwloc = hwloc_library;
};

template <class Known>
struct Sourced {
  Known known;
  bool by_sys_alone = true;  ///< the usual case: hwloc was not asked
  std::string source;        ///< for the user: "from /sys and hwloc", and, if hwloc was asked without success, the
                             ///< reason
};

/// The binding of a process that may use the processors `allowed`. May throw std::bad_alloc.
Sourced<Binding> find_binding(std::span<const int> allowed, const ProcessorSources& sources = {});
/// The number of processors, cores and domains of this host. May throw std::bad_alloc.
Sourced<Processors> find_processors(const ProcessorSources& sources = {});

}  // namespace bestride::inline model
