// SPDX-License-Identifier: Apache-2.0
#include "model/sys_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>

namespace bestride::inline model {

std::string sys_line(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[4096];
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  if (length <= 0) return "";
  const std::string line(text, static_cast<std::size_t>(length));
  return line.substr(0, line.find('\n'));
}

std::vector<std::string> sys_names(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  std::vector<std::string> names;
  if (!open) return names;
  while (const dirent* entry = readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool sys_has(const std::string& path) noexcept {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::string sys_link(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), text, sizeof text);
  if (length <= 0) return "";
  const std::string target(text, static_cast<std::size_t>(length));
  return target.substr(target.rfind('/') + 1);
}

}  // namespace bestride::inline model
