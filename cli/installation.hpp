// SPDX-License-Identifier: Apache-2.0
#pragma once
// Installation: the objects this command belongs to, found from where the command itself lies, so that a build tree, an
// installation and a copy of it elsewhere all work without a configured path.
#include <string>
#include <vector>

namespace bestride {

struct Back {
  std::string abi;   ///< "mpich", "openmpi", "mpi_abi"
  std::string path;
};

struct Installation {
  std::string executable;  ///< this command
  std::string front;       ///< path of libbestride.so; empty: not found
  std::string version;     ///< what the front says; empty: it can't be loaded or is another version's
  std::vector<Back> backs;
  std::vector<std::string> tried;  ///< where the front was looked for

  static Installation find();
  /// The back for an ABI; null if there is none.
  const Back* back(const std::string& abi) const;
  /// "can't find libbestride.so (...); ..." for a front that was not found.
  std::string why_no_front() const;
};

}  // namespace bestride
