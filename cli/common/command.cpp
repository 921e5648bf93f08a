// SPDX-License-Identifier: Apache-2.0
#include "cli/common/command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace bestride::inline cli {

void fail(const std::string& text, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "bestride: %s\n", text.c_str());
  throw CLI::RuntimeError(code);
}

void finish(int code) { throw CLI::RuntimeError(code); }

}  // namespace bestride::inline cli
