// SPDX-License-Identifier: Apache-2.0
#pragma once
// Installation: the shared objects that belong to this command. They are located relative to the command itself, so
// that a build tree, an installation and a relocated copy all work without a configured path.
#include <string>
#include <vector>

namespace bestride {

struct Back {
  std::string abi;  ///< "mpich", "openmpi", "mpi_abi"
  std::string path;
};

struct Installation {
  std::string executable;  ///< this command
  std::string front;       ///< path of libbestride.so, the preload library; empty: not found
  std::string version;  ///< version that the preload library reports; empty: it cannot be loaded or has another version
  std::vector<Back> backs;
  std::vector<std::string> tried;  ///< paths where the preload library was searched

  static Installation find();
  /// The backend for an ABI; null if there is none.
  const Back* back(const std::string& abi) const;
  /// "can't find libbestride.so (...); ...", if the preload library was not found.
  std::string why_no_front() const;
};

}  // namespace bestride
