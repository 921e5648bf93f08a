// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride report FILE`: the end-of-job table of a JSON report, again.
namespace CLI {
class App;
}

namespace bestride {
void add_report(CLI::App& app);
}
