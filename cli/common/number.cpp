// SPDX-License-Identifier: Apache-2.0
#include "cli/common/number.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>

namespace bestride::inline cli {
namespace {

/// True if all of the text is one decimal number. CLI11 reads the text again, and a whole number with a 0 at the
/// beginning as octal, so that is refused.
template <class Number>
bool read(const std::string& text, Number* value) {
  if (std::is_integral_v<Number> && text.size() > 1 && text[0] == '0') return false;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc{} && at == end;
}

/// "0.1", "1000000".
std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

template <class Number>
CLI::Validator in_range(const char* what, Number least, Number most) {
  const std::string first = text_of(static_cast<double>(least)), last = text_of(static_cast<double>(most));
  const std::string limits = std::string(what) + " from " + first + " to " + last;
  return CLI::Validator(
      [=](std::string& text) {
        Number value{};
        if (!read(text, &value) || !(value >= least && value <= most)) return "'" + text + "' is not " + limits;
        return std::string();
      },
      first + " to " + last);
}

}  // namespace

CLI::Validator whole_number(long long least, long long most) { return in_range("a whole number", least, most); }

CLI::Validator number(double least, double most) { return in_range("a number", least, most); }

}  // namespace bestride::inline cli
