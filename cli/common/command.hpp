// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by all subcommands: exit codes and early termination. A subcommand's callback throws; main() converts the
// exception to the process's exit code.
#include <string>

namespace bestride::inline cli {

enum ExitCode : int {
  exit_good = 0,
  exit_attention = 1,     ///< doctor: something needs attention
  exit_usage = 2,         ///< bad usage or bad input
  exit_no_program = 126,  ///< run: what is named as the launcher is no program that can be executed (as a shell's code)
  exit_not_found = 127,   ///< run: the launcher cannot be started (the code that a shell uses)
};

/// Writes "bestride: <text>" to stderr and ends the command. `text`: cause, then remedy; lower case, one line.
[[noreturn]] void fail(const std::string& text, int code = exit_usage);
/// Ends the command without a message.
[[noreturn]] void finish(int code);

/// True if `descriptor` is a terminal and NO_COLOR is not set (https://no-color.org: any text that is not empty).
bool color_wanted(int descriptor);

}  // namespace bestride::inline cli
