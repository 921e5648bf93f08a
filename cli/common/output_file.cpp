// SPDX-License-Identifier: Apache-2.0
#include "cli/common/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/replace_file.hpp"

namespace bestride::inline cli {

std::string why_not_opened(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error))
    return why_not_writable(path);
  return ::access(path.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

}  // namespace bestride::inline cli
