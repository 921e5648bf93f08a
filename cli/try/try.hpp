// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bestride::inline cli {

/// bestride try: runs a job without and with the library in turns, and says whether the difference is beyond the noise.
/// Takes the words of the job's command out of `words`, as add_run() does.
void add_try(CLI::App& app, std::vector<std::string>& words);

}  // namespace bestride::inline cli
