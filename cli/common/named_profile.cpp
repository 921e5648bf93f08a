// SPDX-License-Identifier: Apache-2.0
#include "cli/common/named_profile.hpp"

#include "cli/common/command.hpp"
#include "cli/common/shell.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {

std::string named_profile(const std::string& path) {
  const std::string absolute = resolved(path);
  const auto profile = MachineProfile::load(absolute);
  if (!profile) {
    // load() says what the library would do in the job. Here the user named the file and can name another one.
    const std::string& cause = profile.error().text;
    fail(cause.substr(0, cause.find("; the built-in")) +
         "; give a file that 'bestride calibrate' wrote, or leave --profile out");
  }
  return absolute;
}

}  // namespace bestride::inline cli
