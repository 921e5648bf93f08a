// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this machine is called in a profile's fingerprint. Knows no MPI: its version is handed in.
#include <string>
#include <string_view>

#include "perfmodel/profile.hpp"

namespace bestride {

/// The fingerprint of this host. `mpi_library_version`: what MPI_Get_library_version wrote, or "" if not known.
MachineFingerprint fingerprint_here(std::string_view mpi_library_version);

/// The lines of an MPI version text that decide speed: for MPICH "MPICH 4.0.2 ch4:ucx", for others the first line.
std::string short_mpi_version(std::string_view mpi_library_version);

}  // namespace bestride
