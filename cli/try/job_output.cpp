// SPDX-License-Identifier: Apache-2.0
#include "cli/try/job_output.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>

namespace bestride::inline cli {
namespace {

using Lines = std::vector<std::string>;

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Each number with its sign, fraction and exponent becomes "#". Blanks that align numbers become one.
std::string without_numbers(const std::string& line) {
  std::string masked;
  for (std::size_t at = 0; at < line.size();) {
    if (digit(line[at])) {
      while (at < line.size() && (digit(line[at]) || line[at] == '.')) ++at;
      std::size_t exponent = at;
      if (exponent < line.size() && (line[exponent] == 'e' || line[exponent] == 'E')) {
        ++exponent;
        if (exponent < line.size() && (line[exponent] == '+' || line[exponent] == '-')) ++exponent;
        if (exponent < line.size() && digit(line[exponent])) at = exponent;
        while (at < line.size() && digit(line[at])) ++at;
      }
      if (!masked.empty() && masked.back() == '-') masked.pop_back();
      masked += '#';
    } else {
      if (line[at] != ' ' || masked.empty() || masked.back() != ' ') masked += line[at];
      ++at;
    }
  }
  return masked;
}

Lines sorted_lines(const std::string& text, bool mask) {
  Lines lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    lines.push_back(mask ? without_numbers(line) : line);
    from = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool all_alike(const std::vector<std::string>& runs, bool mask) {
  const Lines expected = sorted_lines(runs.front(), mask);
  return std::all_of(runs.begin() + 1, runs.end(),
                     [&](const std::string& run) { return sorted_lines(run, mask) == expected; });
}

std::string first_only_in(const Lines& lines, const Lines& others) {
  Lines only;
  std::set_difference(lines.begin(), lines.end(), others.begin(), others.end(), std::back_inserter(only));
  return only.empty() ? "" : only.front();
}

}  // namespace

OutputDifference compare_outputs(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  const bool mask = !all_alike(first, false);
  if (mask && !all_alike(first, true)) return {OutputComparison::varies, -1, "", ""};
  const Lines expected = sorted_lines(first.front(), mask);
  for (std::size_t run = 0; run < second.size(); ++run) {
    const Lines found = sorted_lines(second[run], mask);
    if (found != expected)
      return {OutputComparison::differs, static_cast<int>(run), first_only_in(expected, found),
              first_only_in(found, expected)};
  }
  return {mask ? OutputComparison::same_but_numbers : OutputComparison::same, -1, "", ""};
}

}  // namespace bestride::inline cli
