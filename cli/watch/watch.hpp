// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride run --watch`: starts the launcher, watches its ranks, and says what is wrong. Ranks on this host are
// watched through their records, those on other hosts through the agents there.
#include <string>
#include <vector>

#include "cli/watch/job_outputs.hpp"
#include "telemetry/detector/detector.hpp"

namespace bestride::inline cli {

enum class OnFault { report, abort, command };

struct WatchOptions {
  std::string folder;  ///< of the verdict files
  OnFault on_fault = OnFault::report;
  std::string command;  ///< for OnFault::command: a shell command that gets the verdict as JSON on its stdin
  double patience = Limits{}.working;  ///< seconds for which a rank may work outside MPI while others wait
  OutputOptions outputs;
};

class Agents;

/// Runs the launcher until it ends, and returns its exit code, or 128 + the signal that ended it; never 0 if the job
/// was aborted. The environment is already set
/// (with BESTRIDE_WATCHER, and the addresses and keys of `agents`). `path`: of the launcher's program.
int watch(const std::string& path, const std::vector<std::string>& command, const WatchOptions& options,
          Agents& agents);

}  // namespace bestride::inline cli
