// SPDX-License-Identifier: Apache-2.0
#pragma once
// Declares every environment variable of the project once. The values, `bestride info --env`, the page
// docs/variables.md and the warning about an unknown BESTRIDE_* name all come from this table. Precedence: the
// environment, the file that BESTRIDE_CONFIG names, ~/.config/bestride/config, /etc/bestride/config. A file has one
// NAME=value per line; '#' starts a comment.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bestride {

enum class VariableType : std::uint8_t { flag, size, automatic_size, text, choice };

struct Variable {
  /// Full name, BESTRIDE_...; BESTRIDE_FORCE=name for one of the choices that only tests and measurements make.
  const char* name;
  /// flag: 0/1/on/off/yes/no/true/false; size: bytes, with an optional suffix K, M, G (powers of 1024); automatic_size:
  /// the same or "auto"; choice: one of `choices`. Flags in upper or lower case.
  VariableType type;
  const char* default_value;
  const char* choices;            ///< for VariableType::choice: "a|b|c", else ""
  const char* help;               ///< one line
  bool environment_only = false;  ///< it is read before the files are, or set by the command for its job
  bool internal = false;          ///< set by the command for its job; not in the user's page
};

/// The whole table, in the order of the documentation. Static storage.
std::span<const Variable> variables() noexcept;

/// Where a value comes from.
enum class VariableSource : std::uint8_t { environment, config_file, user_file, system_file, built_in };

struct VariableValue {
  std::string text;
  VariableSource source = VariableSource::built_in;
  std::string file;  ///< for the file sources
};

/// The effective values of one process, read once. Immutable after construction, so threads may read it concurrently.
class Settings {
 public:
  /// Reads environment and files. Never fails: for a bad value or an unreadable file it adds a line to problems(), and
  /// the default value applies.
  static Settings read();
  /// The settings of the process. The first call reads them and writes the problems to stderr.
  static const Settings& get();
  /// As get(), for a caller that prints the problems itself: if this is the first call of the process, nothing is
  /// written.
  static const Settings& get_silently();

  /// What was wrong: one line for each problem, with its remedy.
  const std::vector<std::string>& problems() const noexcept { return problems_; }

  bool flag(const char* name) const;
  std::int64_t size(const char* name) const;
  const std::string& text(const char* name) const;
  VariableValue value(const char* name) const;

 private:
  static const Settings& first(bool saying);
  void take(std::size_t i, const std::string& text, VariableSource source, const std::string& file);
  void take_forced(const std::string& all, VariableSource source, const std::string& file);
  void read_file(const std::string& path, VariableSource source, bool asked_for);

  std::vector<VariableValue> values_;  ///< parallel to variables()
  std::vector<std::string> problems_;
};

/// "1", "on", "yes", "true" -> true; "0", "off", "no", "false" -> false, in upper or lower case; anything else: returns
/// false and sets *ok = false.
bool parse_flag(const std::string& text, bool* ok) noexcept;
/// "64K" -> 65536. Negative, empty or overflowing text, and text with trailing characters: returns 0 and sets *ok =
/// false.
std::int64_t parse_size(const std::string& text, bool* ok) noexcept;

/// BESTRIDE_* names in the environment that are not in the table, each with the nearest known name (edit distance at
/// most 3) or "". The comparison is case-sensitive.
struct UnknownVariable {
  std::string name;
  std::string nearest;
};
std::vector<UnknownVariable> unknown_variables();

}  // namespace bestride
