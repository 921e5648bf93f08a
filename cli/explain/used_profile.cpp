// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/used_profile.hpp"

#include "cli/common/mpi_library.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline cli {

UsedProfile find_used_profile() {
  UsedProfile used;
  const std::vector<MpiLibrary> libraries = installed_mpi_libraries();
  const std::string version = libraries.empty() ? "" : libraries.front().version;
  const std::string library = short_mpi_version(version);
  if (!library.empty()) used.one_node = OneNodeLimits::built_in(one_node_library(library));
  used.library_known = library.empty() || built_in_curves_are_of(library);
  if (const std::string path = find_profile_path(); !path.empty()) {
    auto loaded = MachineProfile::load(path);
    const std::string stale = loaded ? why_stale(loaded->fingerprint, fingerprint_here(version)) : "";
    if (loaded && stale.empty()) {
      used.loaded = std::move(*loaded);
      used.name = path;
      used.one_node = limits_of(used.loaded->one_node, used.one_node);
      return used;
    }
    used.problem = loaded ? path + ": " + stale : loaded.error().text;
  }
  if (used.library_known) return used;
  used.name += ", for any MPI library";
  used.limit =
      "its curves are of MPICH 4.0 over UCX, not of " + library +
      ", so only what is safe with any library is done; 'bestride calibrate' of a Bestride that was built with "
      "this library measures it";
  return used;
}

}  // namespace bestride::inline cli
