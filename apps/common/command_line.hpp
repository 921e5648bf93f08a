// SPDX-License-Identifier: Apache-2.0
#pragma once
// Command-line options of the applications and benchmarks: "--name value", "--name=value" and flags. Parsed by hand, so
// that an application needs nothing but an MPI compiler. Not thread-safe.
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace command_line {

/// Takes the text of a value. Returns "" if it is valid, otherwise the valid values: "a whole number from 1 to 4".
using Setter = std::function<std::string(const std::string&)>;
/// Setters by the name of the option, with its dashes. Every setter refers to a variable that must outlive it.
using Valued = std::map<std::string, Setter>;
using Flags = std::map<std::string, std::function<void()>>;

/// Applies all arguments in their order. Returns "" or an error message of one line.
std::string parse(const std::vector<std::string>& arguments, const Valued& valued, const Flags& flags);

Setter whole(int& target, int least, int most);
/// A number from `least` to `most`.
Setter number(double& target, double least, double most);
Setter file_name(std::string& target);
/// Numbers of bytes from 1 to 2048m with commas between: 65536, 64k, 4m.
Setter sizes(std::vector<std::size_t>& target);

/// The names of an enumeration's values. Tables of these have static storage.
template <class Enum>
struct Named {
  Enum value;
  const char* name;
};

/// "?" if `value` is not in the table.
template <class Enum, std::size_t count>
const char* name_in(const Named<Enum> (&table)[count], Enum value) {
  for (const auto& entry : table)
    if (entry.value == value) return entry.name;
  return "?";
}

template <class Enum, std::size_t count>
std::string choices(const Named<Enum> (&table)[count]) {
  std::string text;
  for (const auto& entry : table) text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

template <class Enum, std::size_t count>
Setter one_of(Enum& target, const Named<Enum> (&table)[count]) {
  return [&](const std::string& text) {
    for (const auto& entry : table)
      if (text == entry.name) return target = entry.value, std::string();
    return "one of " + choices(table);
  };
}

/// The parts of `text` between commas.
std::vector<std::string> split(const std::string& text);

/// Names with commas between; replaces what the target had.
template <class Enum, std::size_t count>
Setter several_of(std::vector<Enum>& target, const Named<Enum> (&table)[count]) {
  return [&](const std::string& text) {
    target.clear();
    for (const std::string& word : split(text)) {
      Enum value{};
      if (!one_of(value, table)(word).empty()) return "some of " + choices(table) + ", with commas between";
      target.push_back(value);
    }
    return std::string();
  };
}

}  // namespace command_line
