// SPDX-License-Identifier: Apache-2.0
// The doctor's checks of this host's processors and NICs, and of the user's settings for them.
#include <cstdlib>

#include "base/variables.hpp"
#include "cli/common/host.hpp"
#include "cli/doctor/checks.hpp"
#include "model/rails.hpp"
#include "model/topology_file.hpp"

namespace bestride::inline cli {

void check_topology(Findings& findings) {
  findings.ok("topology", processors_text());
  const Settings& settings = Settings::get_silently();
  const std::string& path = settings.text("BESTRIDE_TOPOLOGY");
  if (path.empty()) return;
  const Result<std::string> text = TopologyFile::read(path);
  if (!text) return findings.problem("topology", text.error().text);
  // Whether it fits the job's ranks can only be checked in the job.
  const Result<TopologyFile> file = TopologyFile::parse(*text, path);
  if (!file) return findings.problem("topology", file.error().text);
  if (settings.text("BESTRIDE_ALL_RANKS") != "0")
    findings.ok("topology", "topology file '" + path + "' can be read");
  else
    findings.problem("topology",
                     "BESTRIDE_TOPOLOGY is not used: it takes a job in which every rank has the preload; set "
                     "BESTRIDE_ALL_RANKS=1 or auto");
}

void check_rails(Findings& findings) {
  const Result<RailsHere> here = rails_here();
  const std::string& wanted = Settings::get_silently().text("BESTRIDE_NICS");
  // Rails that the user did not name are skipped if they are not available, and this host need not be part of the job.
  const bool named = !wanted.empty() && wanted != "auto" && wanted != "profile";
  if (!here && !named) return findings.note("rails", here.error().text);
  if (!here) return findings.problem("rails", here.error().text);
  if (here->rails.empty()) {
    const Result<Rails> could = equal_rails(nics_here());
    if (!could || wanted == "off") return findings.ok("rails", "off; " + nics_text());
    return findings.note(
        "rails",
        "off, and there are " + std::to_string(could->size()) + " equal NICs (" + nics_text() +
            "); 'bestride calibrate' with several hosts finds out whether jobs are faster with a rank on each");
  }
  findings.ok("rails", "local ranks use in turn " + rails_text(*here));
  for (const char* name : device_variables(here->rails[0]))
    if (const char* value = std::getenv(name); value && *value)
      findings.note("rails", std::string(name) + "=" + value + " is set and stays, so " +
                                 (here->by_profile ? "the profile" : "BESTRIDE_NICS") + " has no effect on it; unset " +
                                 (here->by_profile ? "it" : "one of them"));
}

}  // namespace bestride::inline cli
