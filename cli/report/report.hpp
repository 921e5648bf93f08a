// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride report FILE`: prints the end-of-job table of a JSON report.
namespace CLI {
class App;
}

namespace bestride::inline cli {
void add_report(CLI::App& app);
}
