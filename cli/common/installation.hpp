// SPDX-License-Identifier: Apache-2.0
#pragma once
// Installation: the shared objects that belong to this command. They are located relative to the command itself, so
// that a build tree, an installation and a relocated copy all work without a configured path.
#include <string>
#include <vector>

namespace bestride::inline cli {

struct Backend {
  std::string abi;  ///< "mpich", "openmpi", "mpi_abi"
  std::string path;
};

struct Installation {
  std::string executable;  ///< this command
  std::string preload;     ///< path of libbestride.so, the preload library; empty: not found
  std::string version;  ///< version that the preload library reports; empty: it cannot be loaded or has another version
  std::vector<Backend> backends;
  std::vector<std::string> tried;  ///< paths where the preload library was searched

  static Installation find();
  /// The backend for an ABI; null if there is none.
  const Backend* backend(const std::string& abi) const;
  /// Why no preload library can be used, and the remedy: it was not found, or LD_PRELOAD can't name its path. "" if it
  /// can.
  std::string why_no_preload() const;
};

/// Why an installation has no backend for an ABI, and the remedy.
std::string why_no_backend(const std::string& abi);

}  // namespace bestride::inline cli
