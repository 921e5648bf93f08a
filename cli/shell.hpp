// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a shell does: find a program, quote a word, take a program's output.
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bestride {

/// `word` as a POSIX shell reads it back unchanged; untouched where no quoting is needed.
std::string shell_quoted(const std::string& word);

/// The executable file a shell would run for `name`; empty if there is none.
std::string find_program(const std::string& name);

/// All symbolic links resolved; `path` itself where that fails.
std::string resolved(const std::string& path);
/// The part after the last '/'.
std::string base_name(const std::string& path);

struct Output {
  std::string text;      ///< stdout, at most 1 MiB
  int exit_code = -1;    ///< -1: ended by a signal or by the time limit
};
/// Runs `in_child(fd)` in a child process that is given up after `seconds`; `fd` is where to write, stdout is the same place and
/// stderr is nowhere. For what may crash or hang: other people's libraries.
std::optional<Output> in_child(const std::function<void(int fd)>& in_child, int seconds = 10);
/// Runs a program, found as execvp finds it.
std::optional<Output> output_of(const std::vector<std::string>& command, int seconds = 10);

}  // namespace bestride
