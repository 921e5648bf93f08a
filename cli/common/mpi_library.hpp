// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which MPI is present: determined by soname, and by a call of the library in a child process (MPI_Get_library_version
// may be called before MPI_Init), so that a library that crashes or hangs while loading does no harm here.
#include <map>
#include <string>
#include <vector>

namespace bestride::inline cli {

struct MpiLibrary {
  std::string soname;  ///< "libmpich.so.12"
  std::string path;
  std::string version;  ///< the full text of MPI_Get_library_version; empty: the call was not possible
  std::string abi;      ///< "mpich", "openmpi", "mpi_abi"
};

/// The ABI that a soname stands for; "" if it is not an MPI library. Both families use some names (libmpi.so.12 was
/// also Open MPI 1.10's), so the version text of the library takes precedence if available.
std::string abi_of_soname(const std::string& soname);
std::string abi_of_version(const std::string& version);

/// Loads the library at `path` (or by that soname, as the dynamic linker finds it) in a child process and returns its
/// properties. `path` stays empty if it cannot be loaded.
MpiLibrary ask_mpi_library(const std::string& soname, const std::string& path);
/// All MPI libraries that the dynamic linker finds by a known soname.
std::vector<MpiLibrary> installed_mpi_libraries();

/// soname -> path of every library that the dynamic linker would load for `program`; "" if not found. Runs the
/// program's own dynamic linker; no code of the program runs. Empty if that fails.
std::map<std::string, std::string> loaded_libraries(const std::string& interpreter, const std::string& program);

}  // namespace bestride::inline cli
