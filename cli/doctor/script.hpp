// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first line of a script, as the kernel and env read it.
#include <optional>
#include <string>
#include <vector>

namespace bestride::inline cli {

struct Interpreter {
  std::vector<std::string>
      command;       ///< with its argument, if there is one: the kernel passes the rest of the line as one
  std::string name;  ///< of the program that runs the script: behind env the one that env starts
  bool found = false;
};

/// The interpreter that the first line of a script names. No value: the file begins with another line.
std::optional<Interpreter> interpreter_of(const std::string& script);

/// What to do about an interpreter that is not found: cause and remedy.
std::string why_not_started(const Interpreter& interpreter);

}  // namespace bestride::inline cli
