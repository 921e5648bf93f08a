// SPDX-License-Identifier: Apache-2.0
#include "telemetry/report/quantity.hpp"

#include <charconv>
#include <cmath>

namespace bestride::inline telemetry {
namespace {

/// Three significant digits, 0 <= value < 1024.
std::string three_digits(double value) {
  char text[32];
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr;
  return {text, end};
}

std::string scaled(std::uint64_t number, double factor, const char* const (&units)[6], const char* unit_of_one) {
  if (static_cast<double>(number) < factor) return std::to_string(number) + unit_of_one;
  double value = static_cast<double>(number);
  int unit = -1;
  // Values from 999.5 on would be written with four digits.
  for (; unit < 5 && value >= 999.5; ++unit) value /= factor;
  return three_digits(value) + " " + units[unit < 0 ? 0 : unit];
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  static constexpr const char* units[6] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(bytes, 1024, units, " B");
}

std::string count_text(std::uint64_t count) {
  static constexpr const char* units[6] = {"k", "M", "G", "T", "P", "E"};
  return scaled(count, 1000, units, "");
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return "-" + seconds_text(-seconds);
  if (seconds == 0) return "0 s";
  static constexpr const char* units[] = {"s", "ms", "us", "ns"};
  int unit = 0;
  for (; unit < 3 && seconds < 0.9995; ++unit) seconds *= 1000;
  if (seconds < 1e6) return three_digits(seconds) + " " + units[unit];
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, seconds, std::chars_format::scientific, 2).ptr;
  return std::string(text, end) + " s";
}

std::string fitted(const std::string& text, std::size_t width) {
  std::string clean = text.size() <= width || width < 3 ? text.substr(0, width) : text.substr(0, width - 3) + "...";
  // Layouts and library names are ASCII; other characters would also misalign the columns.
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return clean;
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

}  // namespace bestride::inline telemetry
