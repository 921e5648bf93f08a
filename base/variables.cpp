// SPDX-License-Identifier: Apache-2.0
#include "base/variables.hpp"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/input_file.hpp"
#include "base/message.hpp"
#include "base/nearest_name.hpp"

extern char** environ;

namespace bestride {
namespace {

constexpr const char* forced = "BESTRIDE_FORCE";

int index_of(std::string_view name) {
  const auto all = variables();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (name == all[i].name) return static_cast<int>(i);
  return -1;
}

bool valid(const Variable& variable, const std::string& text) {
  bool ok = true;
  switch (variable.type) {
    case VariableType::flag: parse_flag(text, &ok); return ok;
    case VariableType::size: parse_size(text, &ok); return ok;
    case VariableType::automatic_size: return text == "auto" || (parse_size(text, &ok), ok);
    case VariableType::text: return true;
    case VariableType::choice: {
      const std::string all = std::string("|") + variable.choices + "|";
      return !text.empty() && text.find('|') == std::string::npos && all.find("|" + text + "|") != std::string::npos;
    }
  }
  return false;
}

std::string expected(const Variable& variable) {
  switch (variable.type) {
    case VariableType::flag: return "0 or 1";
    case VariableType::size: return "a size such as 64K";
    case VariableType::automatic_size: return "auto or a size such as 64K";
    case VariableType::choice: return std::string("one of ") + variable.choices;
    case VariableType::text: break;
  }
  return "text";
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

bool parse_flag(const std::string& text, bool* ok) noexcept {
  *ok = true;
  for (const char* yes : {"1", "on", "yes", "true"})
    if (::strcasecmp(text.c_str(), yes) == 0) return true;
  for (const char* no : {"0", "off", "no", "false"})
    if (::strcasecmp(text.c_str(), no) == 0) return false;
  *ok = false;
  return false;
}

std::int64_t parse_size(const std::string& text, bool* ok) noexcept {
  *ok = false;
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return 0;
  errno = 0;
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  int shift = 0;
  if (*end) {
    switch (std::toupper(static_cast<unsigned char>(*end))) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      default: return 0;
    }
    ++end;
  }
  if (*end || errno || number > (std::numeric_limits<std::int64_t>::max() >> shift)) return 0;
  *ok = true;
  return static_cast<std::int64_t>(number) << shift;
}

void Settings::take(std::size_t i, const std::string& text, VariableSource source, const std::string& file) {
  const Variable& variable = variables()[i];
  if (valid(variable, text))
    values_[i] = {text, source, file};
  else
    problems_.push_back(std::string(variable.name) + "='" + text + "' is not " + expected(variable) + "; '" +
                        values_[i].text + "' is used");
  if (std::string_view(variable.name) == forced) take_forced(text, source, file);
}

/// `all`: name=value,name=value.
void Settings::take_forced(const std::string& all, VariableSource source, const std::string& file) {
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t end = std::min(all.find(',', from), all.size());
    const std::string entry = trimmed(all.substr(from, end - from));
    const std::size_t equals = entry.find('=');
    const int i = equals == std::string::npos ? -1 : index_of(std::string(forced) + "=" + entry.substr(0, equals));
    if (i >= 0)
      take(static_cast<std::size_t>(i), entry.substr(equals + 1), source, file);
    else
      problems_.push_back(std::string(forced) + ": '" + entry +
                          "' is not name=value with a known name ('bestride info --env' lists them); it is ignored");
    from = end + 1;
  }
}

/// `asked_for`: the user named the file, so it must exist. The files at the default paths are optional.
void Settings::read_file(const std::string& path, VariableSource source, bool asked_for) {
  constexpr std::size_t most = std::size_t{1} << 20;
  Result<InputFile> file = InputFile::open(path, most);
  if (!file) {
    if (asked_for || ::access(path.c_str(), R_OK) == 0)
      problems_.push_back("can't read the configuration file '" + path + "': " + file.error().text +
                          "; it is ignored (" + (asked_for ? "set BESTRIDE_CONFIG to a file" : "replace it by a file") +
                          " of NAME=value lines)");
    return;
  }
  std::string all(file->size(), '\0');
  all.resize(file->read(all.data(), all.size()));
  std::string_view rest = all;
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    std::string text(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (const auto comment = text.find('#'); comment != std::string::npos) text.resize(comment);
    text = trimmed(text);
    if (text.empty()) continue;
    const auto equals = text.find('=');
    const std::string name = trimmed(text.substr(0, equals));
    const int i = equals == std::string::npos ? -1 : index_of(name);
    if (i < 0)
      problems_.push_back(
          path + ":" + std::to_string(number) + ": '" + text +
          "' is not NAME=value with a known name ('bestride info --env' lists them); the line is ignored");
    else if (variables()[i].environment_only)
      problems_.push_back(name + " in " + path + " has no effect; set it in the environment");
    else
      take(static_cast<std::size_t>(i), trimmed(text.substr(equals + 1)), source, path);
  }
}

Settings Settings::read() {
  Settings settings;
  for (const Variable& variable : variables())
    settings.values_.push_back({variable.default_value, VariableSource::built_in, ""});
  // Lowest precedence first; each later source overwrites.
  settings.read_file("/etc/bestride/config", VariableSource::system_file, false);
  if (const char* home = std::getenv("HOME"))
    settings.read_file(std::string(home) + "/.config/bestride/config", VariableSource::user_file, false);
  if (const char* path = std::getenv("BESTRIDE_CONFIG"); path && *path)
    settings.read_file(path, VariableSource::config_file, true);
  for (std::size_t i = 0; i < variables().size(); ++i)
    if (const char* name = variables()[i].name; !std::strchr(name, '='))
      if (const char* text = std::getenv(name)) settings.take(i, text, VariableSource::environment, "");
  return settings;
}

const Settings& Settings::first(bool saying) {
  static const Settings* const settings = [saying] {
    const auto* const made = new Settings(read());  // never destroyed: calls may come after static destructors
    if (saying)
      for (const std::string& problem : made->problems_) warn_once_per_job(problem.c_str(), "%s", problem.c_str());
    return made;
  }();
  return *settings;
}
const Settings& Settings::get() { return first(true); }
const Settings& Settings::get_silently() { return first(false); }

VariableValue Settings::value(const char* name) const {
  const int i = index_of(name);
  return i < 0 ? VariableValue{} : values_[static_cast<std::size_t>(i)];
}

const std::string& Settings::text(const char* name) const {
  static const std::string* const none = new std::string;
  const int i = index_of(name);
  return i < 0 ? *none : values_[static_cast<std::size_t>(i)].text;
}

bool Settings::flag(const char* name) const {
  bool ok;
  return parse_flag(text(name), &ok);
}

std::int64_t Settings::size(const char* name) const {
  bool ok;
  return parse_size(text(name), &ok);
}

std::vector<UnknownVariable> unknown_variables() {
  std::vector<std::string> known;
  for (const Variable& variable : variables()) known.emplace_back(variable.name);
  std::vector<UnknownVariable> unknown;
  for (char** entry = environ; *entry; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (!equals || std::strncmp(*entry, "BESTRIDE_", 9) != 0) continue;
    const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
    if (index_of(name) >= 0) continue;
    unknown.push_back({name, nearest_name(name, known, 3)});
  }
  return unknown;
}

}  // namespace bestride
