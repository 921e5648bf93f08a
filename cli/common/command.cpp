// SPDX-License-Identifier: Apache-2.0
#include "cli/common/command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

namespace bestride::inline cli {

void fail(const std::string& text, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "bestride: %s\n", text.c_str());
  throw CLI::RuntimeError(code);
}

void finish(int code) { throw CLI::RuntimeError(code); }

bool color_wanted(int descriptor) {
  const char* const none = std::getenv("NO_COLOR");
  return isatty(descriptor) && !(none && *none);
}

}  // namespace bestride::inline cli
