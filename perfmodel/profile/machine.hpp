// SPDX-License-Identifier: Apache-2.0
#pragma once
// The description of this machine in a profile's fingerprint. Does not use MPI; the caller passes the version.
#include <string>
#include <string_view>

#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// The fingerprint of this host. `mpi_library_version`: the text from MPI_Get_library_version, or "" if unknown.
MachineFingerprint fingerprint_here(std::string_view mpi_library_version);

/// The parts of an MPI version text that determine speed: for MPICH "MPICH 4.0.2 ch4:ucx", for others the first line.
std::string short_mpi_version(std::string_view mpi_library_version);

}  // namespace bestride::inline perfmodel
