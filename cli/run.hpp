// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride run`: starts a job's launcher with the library preloaded. Nothing stays between the user and the launcher: the
// environment is set and the launcher takes this process's place.
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bestride {
/// Takes the job's command, the words from the first "--" on, out of `words`: CLI11 would read the launcher's options as ours.
void add_run(CLI::App& app, std::vector<std::string>& words);
}  // namespace bestride
