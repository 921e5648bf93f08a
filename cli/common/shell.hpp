// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of a shell: find a program, quote a word, capture a program's output.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bestride::inline cli {

/// `word` quoted for a POSIX shell; unchanged if it needs no quotes.
std::string shell_quoted(const std::string& word);

/// The executable file that a shell would run for `name`; empty if there is none.
std::string find_program(const std::string& name);

/// Why find_program() finds nothing, and the remedy. *exists: there is such a file or folder.
std::string why_no_program(const std::string& name, bool* exists);

/// `path` with all symbolic links resolved; `path` itself if that fails.
std::string resolved(const std::string& path);
/// The part after the last '/'.
std::string base_name(const std::string& path);

struct Output {
  std::string text;    ///< stdout, at most 1 MiB
  int exit_code = -1;  ///< -1: ended by a signal or by the time limit
};
/// Runs `in_child(fd)` in a child process, which is killed after `seconds`. `fd` is where to write; stdout goes to the
/// same place and stderr is discarded. For code that may crash or hang, such as third-party libraries.
std::optional<Output> in_child(const std::function<void(int fd)>& in_child, int seconds = 10);
/// Runs a program, searched as by execvp.
std::optional<Output> output_of(const std::vector<std::string>& command, int seconds = 10);

/// Runs a shell command with `input` on its stdin, with no signal blocked or ignored, and waits for it. What it does
/// not read is dropped. Error: it can't be started.
Result<bool> run_with_input(const std::string& command, const std::string& input);

}  // namespace bestride::inline cli
