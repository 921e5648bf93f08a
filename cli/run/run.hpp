// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride run`: starts a job's launcher with the library preloaded. It sets the environment and then execs the
// launcher, so no process stays between the user and the launcher.
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bestride::inline cli {
/// Removes the job's command (the words from the first "--" on) from `words`, because CLI11 would parse the launcher's
/// options as options of this command.
void add_run(CLI::App& app, std::vector<std::string>& words);
}  // namespace bestride::inline cli
