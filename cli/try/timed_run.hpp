// SPDX-License-Identifier: Apache-2.0
#pragma once
// One timed run of a job whose output goes to files.
#include <string>
#include <utility>
#include <vector>

namespace bestride::inline cli {

struct TimedRun {
  double seconds = 0;        ///< from start to exit of the command
  int exit_code = 0;         ///< as a shell reports it: 128 + the signal if one ended it
  bool interrupted = false;  ///< a signal asked this process to end; it was passed on to the command
};

/// Runs `command` (path of the program, then its arguments as words, of which the first is its name) and waits for it.
/// `environment` is set in the command alone; an empty value removes the variable. stdin is empty, stdout and stderr
/// are written to the two files. Ends this process with a message if the command can't be started or a file not be
/// written.
TimedRun run_timed(const std::string& path, const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment, const std::string& output_file,
                   const std::string& error_file);

}  // namespace bestride::inline cli
