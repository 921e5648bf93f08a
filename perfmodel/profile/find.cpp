// SPDX-License-Identifier: Apache-2.0
// Finds the profile that a process uses, and checks whether it fits.
#include <unistd.h>

#include <cstdlib>

#include "base/variables.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

namespace {

std::string user_profile_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config && *config == '/') return std::string(config) + "/bestride/profile.json";
  return home && *home ? std::string(home) + "/.config/bestride/profile.json" : "";
}

}  // namespace

std::string profile_path_to_write() {
  const std::string& named = Settings::get().text("BESTRIDE_PROFILE");
  return named.empty() ? user_profile_path() : named;
}

std::string find_profile_path() {
  const std::string& named = Settings::get().text("BESTRIDE_PROFILE");
  if (!named.empty()) return named;
  const std::string user = user_profile_path();
  if (!user.empty() && ::access(user.c_str(), F_OK) == 0) return user;
  const char* system = "/etc/bestride/profile.json";
  return ::access(system, F_OK) == 0 ? system : "";
}

std::string why_stale(const MachineFingerprint& profile, const MachineFingerprint& here) {
  const struct {
    const char* what;
    const std::string& measured;
    const std::string& now;
    const char* remedy = "run 'bestride calibrate'";
  } fields[] = {{"CPU", profile.cpu, here.cpu},
                {"MPI library", profile.mpi_library, here.mpi_library,
                 "run 'bestride calibrate' of a Bestride that was built with this library"},
                {"host class", profile.host_class, here.host_class},
                {"bestride version", profile.bestride, here.bestride},
                {"GPU or driver", profile.gpu, here.gpu}};
  for (const auto& field : fields)
    if (!field.measured.empty() && !field.now.empty() && field.measured != field.now)
      return std::string("the profile was measured with another ") + field.what + " ('" + field.measured + "', here '" +
             field.now + "'); " + field.remedy;
  return "";
}

}  // namespace bestride::inline perfmodel
