// SPDX-License-Identifier: Apache-2.0
#include "apps/common/text.hpp"

#include <cstdarg>
#include <cstdio>

namespace apps {

std::string format(const char* pattern, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

bool write_text(const std::string& path, const std::string& text) {
  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (!file) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && written;
}

}  // namespace apps
