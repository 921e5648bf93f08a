// SPDX-License-Identifier: Apache-2.0
#pragma once
// This machine as hwloc knows it: a second source where /sys says nothing, and the first where the user describes a machine to hwloc.
//
// libhwloc is opened for one question and closed again; nothing is linked, no header of it is needed. Any 2.x from 2.1 on will do:
// the functions, numbers and the beginning of hwloc_obj that are used here are the same in all of them (the ABI libhwloc.so.15 stands for).
#include <vector>

#include "base/result.hpp"

namespace bestride {

struct HwlocMachine {
  struct Part {
    int number = -1;              ///< the operating system's for a NUMA domain; of a core its lowest processor
    std::vector<int> processors;  ///< as the operating system numbers them, ascending
  };
  std::vector<Part> cores;    ///< none: hwloc does not know them
  std::vector<Part> domains;  ///< likewise; of domains over the same processors (two kinds of memory) all
};

constexpr const char* hwloc_library = "libhwloc.so.15";

/// What a load of the topology says. `library`: its name or path, for tests; one that the process has already is taken. hwloc reads its
/// own variables. Where the user describes no machine to it, it asks the processors themselves (the cpuid instruction), not /sys: the calling
/// thread is bound to one after the other, and as before in the end. The error says why nothing is known. May throw std::bad_alloc.
Result<HwlocMachine> hwloc_machine(const char* library = hwloc_library);

/// The variable by which the user describes a machine to hwloc (HWLOC_XMLFILE, HWLOC_SYNTHETIC, HWLOC_FSROOT); nullptr: he does not.
const char* hwloc_description() noexcept;

}  // namespace bestride
