// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/script.hpp"

#include <limits>
#include <sstream>
#include <string_view>

#include "base/input_file.hpp"
#include "cli/common/shell.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* blanks = " \t";

/// The program behind env's options and assignments in `argument`, which env splits only with -S.
std::string program_of_env(const std::string& argument) {
  for (const std::string_view split : {"-S", "--split-string="}) {
    if (!argument.starts_with(split)) continue;
    std::istringstream rest(argument.substr(split.size()));
    for (std::string word; rest >> word;)
      if (!word.starts_with('-') && word.find('=') == std::string::npos) return word;
    return "";
  }
  return argument;
}

}  // namespace

std::optional<Interpreter> interpreter_of(const std::string& script) {
  Result<InputFile> file = InputFile::open(script, std::numeric_limits<std::size_t>::max() / 2);
  if (!file) return std::nullopt;
  char text[256];  // of which the kernel reads no more
  const std::string_view begin(text, file->read(text, sizeof text));
  const std::string line(begin.substr(0, begin.find('\n')));
  if (!line.starts_with("#!")) return std::nullopt;
  const std::size_t first = line.find_first_not_of(blanks, 2);
  if (first == std::string::npos) return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(blanks, first), line.size());
  Interpreter found;
  found.command = {line.substr(first, end - first)};
  if (const std::size_t argument = line.find_first_not_of(blanks, end); argument != std::string::npos)
    found.command.push_back(line.substr(argument, line.find_last_not_of(blanks) - argument + 1));
  // The kernel does not search PATH.
  const std::string& path = found.command[0];
  found.name = path;
  found.found = !find_program(path.find('/') == std::string::npos ? "./" + path : path).empty();
  if (!found.found || base_name(path) != "env" || found.command.size() < 2) return found;
  found.name = program_of_env(found.command[1]);
  found.found = !find_program(found.name).empty();
  return found;
}

std::string why_not_started(const Interpreter& interpreter) {
  std::string name = interpreter.name, more;
  if (name.ends_with('\r')) {
    name.replace(name.size() - 1, 1, "\\r");
    more = " (the line ends with a carriage return)";
  } else if (name.find_first_of(blanks) != std::string::npos) {
    more = " (env takes the rest of the line for one name; 'env -S' splits it)";
  }
  return "its first line names the interpreter '" + name + "', which is not there" + more +
         "; correct that line, or load the module or environment of the interpreter";
}

}  // namespace bestride::inline cli
