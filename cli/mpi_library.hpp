// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which MPI there is: by soname, and by asking the library itself in a child process (MPI_Get_library_version may be called
// before MPI_Init), so that a library that crashes or hangs while loading harms nothing here.
#include <map>
#include <string>
#include <vector>

namespace bestride {

struct MpiLibrary {
  std::string soname;   ///< "libmpich.so.12"
  std::string path;
  std::string version;  ///< all that MPI_Get_library_version says; empty: it couldn't be asked
  std::string abi;      ///< "mpich", "openmpi", "mpi_abi"
};

/// The ABI a soname stands for; "" if it is no MPI library's. The same name may be either family's (libmpi.so.12 was Open
/// MPI 1.10's too): the version text of the library decides where there is one.
std::string abi_of_soname(const std::string& soname);
std::string abi_of_version(const std::string& version);

/// Asks the library at `path` (or of that soname, where the dynamic linker finds it). path stays empty if it can't be loaded.
MpiLibrary ask_mpi_library(const std::string& soname, const std::string& path);
/// Every MPI library the dynamic linker finds by a known soname.
std::vector<MpiLibrary> installed_mpi_libraries();

/// soname -> path of everything the dynamic linker would load for `program`; "" where it finds nothing. Asks the program's own
/// dynamic linker; no code of the program runs. Empty if that fails.
std::map<std::string, std::string> loaded_libraries(const std::string& interpreter, const std::string& program);

}  // namespace bestride
