// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/findings.hpp"

#include <cstdio>

namespace bestride {

void Findings::say(const char* severity, const std::string& what, const std::string& text) {
  std::printf("%-8s %-9s %s\n", severity, what.c_str(), text.c_str());
}

void Findings::problem(const std::string& what, const std::string& text) {
  say("problem", what, text);
  ++problems_;
}

}  // namespace bestride
