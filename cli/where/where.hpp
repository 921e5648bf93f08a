// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride where [PID | JOB]`: what every rank of the jobs on this host does now, and which rank waits for which.
namespace CLI {
class App;
}

namespace bestride::inline cli {
void add_where(CLI::App& app);
}
