// SPDX-License-Identifier: Apache-2.0
#pragma once
// This machine as hwloc describes it. hwloc is the second source, for what /sys does not contain; it is the first one
// if the user describes a machine to hwloc.
//
// libhwloc is opened for one query and closed again. The library is not linked to it and needs no header of it. Any
// version 2.x from 2.1 on is usable: the functions, the constants and the beginning of hwloc_obj that are used here are
// the same in all of them (ABI libhwloc.so.15).
#include <vector>

#include "base/result.hpp"

namespace bestride::inline model {

struct HwlocMachine {
  struct Part {
    int number = -1;              ///< of a NUMA domain: the operating system's number; of a core: its lowest processor
    std::vector<int> processors;  ///< in the operating system's numbering, ascending
  };
  std::vector<Part> cores;    ///< empty: unknown to hwloc
  std::vector<Part> domains;  ///< empty: unknown to hwloc; several domains can have the same processors (two kinds of
                              ///< memory)
};

constexpr const char* hwloc_library = "libhwloc.so.15";

/// Loads the topology. `library`: its name or path, for tests; a library that the process has already loaded is used.
/// hwloc reads its own environment variables. If the user describes no machine to it, hwloc queries the processors (the
/// cpuid instruction) instead of /sys: it binds the calling thread to each of them in turn and restores the binding at
/// the end. The error states why nothing is known. May throw std::bad_alloc.
Result<HwlocMachine> hwloc_machine(const char* library = hwloc_library);

/// The variable by which the user describes a machine to hwloc (HWLOC_XMLFILE, HWLOC_SYNTHETIC, HWLOC_FSROOT), or
/// nullptr if none is set.
const char* hwloc_description() noexcept;

}  // namespace bestride::inline model
