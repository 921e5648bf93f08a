// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/findings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "cli/common/command.hpp"

namespace bestride::inline cli {
namespace {

/// The escape sequence of a severity (ECMA-48, SGR).
const char* color_of(std::string_view severity) {
  return severity == "problem" ? "\033[31m" : severity == "note" ? "\033[33m" : "\033[32m";
}

}  // namespace

Findings::Findings(bool print) : print_(print), color_(print && color_wanted(STDOUT_FILENO)) {}

int Findings::problems() const noexcept {
  return static_cast<int>(
      std::count_if(all_.begin(), all_.end(), [](const Finding& one) { return one.severity == "problem"; }));
}

void Findings::add(const char* severity, const std::string& check, const std::string& text) {
  all_.push_back({severity, check, text});
  if (!print_) return;
  std::printf("%s%-8s%s %-9s %s\n", color_ ? color_of(severity) : "", severity, color_ ? "\033[0m" : "", check.c_str(),
              text.c_str());
}

}  // namespace bestride::inline cli
