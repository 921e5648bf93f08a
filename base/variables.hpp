// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every environment variable of the project, declared once: from this table come the values, `bestride info --env`, the page
// docs/variables.md and the warning for an unknown BESTRIDE_* name.
// Precedence: the environment, then the file BESTRIDE_CONFIG names, then ~/.config/bestride/config, then
// /etc/bestride/config; a file has one NAME=value a line and '#' comments.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bestride {

enum class VariableType : std::uint8_t { flag, size, text, choice };

struct Variable {
  const char* name;       ///< full name, BESTRIDE_...
  VariableType type;      ///< flag: 0/1/on/off/yes/no; size: bytes with optional K, M, G suffix (powers of 1024)
  const char* default_value;
  const char* choices;    ///< for VariableType::choice: "a|b|c", else ""
  const char* help;       ///< one line
};

/// The whole table, in the order it is documented. Static storage.
std::span<const Variable> variables() noexcept;

/// Where a value came from.
enum class VariableSource : std::uint8_t { environment, config_file, user_file, system_file, built_in };

struct VariableValue {
  std::string text;
  VariableSource source = VariableSource::built_in;
  std::string file;  ///< for the file sources
};

/// The effective values of one process, read once. Immutable after construction, so reading it is thread-safe.
class Settings {
 public:
  /// Reads environment and files. Never fails: a bad value or an unreadable file is among troubles(), and the default stands.
  static Settings read();
  /// The process's settings: read at the first call, which says the troubles.
  static const Settings& get();
  /// The same for who says the troubles himself: does so only if this is the first call of the process.
  static const Settings& get_without_saying();

  /// What was wrong, one line each, with its remedy.
  const std::vector<std::string>& troubles() const noexcept { return troubles_; }

  bool flag(const char* name) const;
  std::int64_t size(const char* name) const;
  const std::string& text(const char* name) const;
  VariableValue value(const char* name) const;

 private:
  static const Settings& first(bool saying);
  void take(std::size_t i, const std::string& text, VariableSource source, const std::string& file);
  void read_file(const std::string& path, VariableSource source, bool asked_for);

  std::vector<VariableValue> values_;  ///< parallel to variables()
  std::vector<std::string> troubles_;
};

/// "1", "on", "yes", "true" -> true; "0", "off", "no", "false" -> false; anything else: false and *ok = false.
bool parse_flag(const std::string& text, bool* ok) noexcept;
/// "64K" -> 65536. Negative, empty, overflowing or trailing text: 0 and *ok = false.
std::int64_t parse_size(const std::string& text, bool* ok) noexcept;

/// BESTRIDE_* names in the environment that are not in the table, each with the nearest known name (edit distance at most 3)
/// or "". BESTRIDE_ names are matched exactly, case counts.
struct UnknownVariable {
  std::string name;
  std::string nearest;
};
std::vector<UnknownVariable> unknown_variables();

}  // namespace bestride
