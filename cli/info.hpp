// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride info`: what is installed and what is in effect; with --env the table of variables, from which docs/variables.md comes.
#include <string>

namespace CLI {
class App;
}

namespace bestride {
void add_info(CLI::App& app);
/// docs/variables.md, from the table in base/.
std::string variables_page();
}  // namespace bestride
