// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride info`: what is installed and what is in effect. With --env it prints the table of variables, from which
// docs/variables.md is generated.
#include <string>

namespace CLI {
class App;
}

namespace bestride::inline cli {
void add_info(CLI::App& app);
/// The text of docs/variables.md, from the table in base/.
std::string variables_page();
}  // namespace bestride::inline cli
