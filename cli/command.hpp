// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every subcommand shares: its exit codes and how it ends early. A subcommand's callback throws; main() turns that into the
// process's exit code.
#include <string>

namespace bestride {

enum ExitCode : int {
  exit_good = 0,
  exit_attention = 1,   ///< doctor: something needs attention
  exit_usage = 2,       ///< bad usage or bad input
  exit_not_found = 127, ///< run: the launcher can't be started, as a shell says it
};

/// Writes "bestride: <text>" to stderr and ends the command. `text`: cause, then remedy, lower case, one line.
[[noreturn]] void fail(const std::string& text, int code = exit_usage);
/// Ends the command quietly.
[[noreturn]] void finish(int code);

}  // namespace bestride
