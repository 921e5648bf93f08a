// SPDX-License-Identifier: Apache-2.0
#pragma once
// The profile that a job on this host would use, with the MPI library that the dynamic linker finds first.
#include <optional>
#include <string>

#include "perfmodel/collective/one_node.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {

struct UsedProfile {
  std::optional<MachineProfile> loaded;  ///< none: the built-in one is used
  std::string name = "built-in";         ///< for people: the path, "built-in", or "built-in, for any MPI library"
  std::string problem;                   ///< why the file is not used; one line
  std::string limit;                     ///< why the built-in one is used in part only; one line
  /// The limits for the library that was found; if none was, those of MPICH 4.0.
  OneNodeLimits one_node = OneNodeLimits::built_in(OneNodeLibrary::mpich_4_0);
  bool library_known = true;  ///< the built-in curves are of this MPI library; also if no library is found

  const MachineProfile& profile() const noexcept { return loaded ? *loaded : MachineProfile::built_in(); }
};

UsedProfile find_used_profile();

}  // namespace bestride::inline cli
