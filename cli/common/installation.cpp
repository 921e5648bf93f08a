// SPDX-License-Identifier: Apache-2.0
#include "cli/common/installation.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/common/shell.hpp"

namespace bestride {
namespace {

namespace fs = std::filesystem;

constexpr const char* front_name = "libbestride.so";

/// Called in a child process, because nothing else needs the library to be loaded into this process.
std::string version_of(const std::string& front) {
  const auto answer = in_child([&](int fd) {
    void* const object = ::dlopen(front.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!object) return;
    const auto version = reinterpret_cast<const char* (*)()>(::dlsym(object, "bestride_version"));
    if (!version) return;
    const std::string text = version();
    [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
  });
  return answer && answer->exit_code == 0 ? answer->text : "";
}

std::vector<Back> backs_beside(const fs::path& front) {
  std::vector<Back> backs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(front.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    constexpr std::string_view head = "libbestride-", tail = ".so";
    if (name.size() > head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail))
      backs.push_back({name.substr(head.size(), name.size() - head.size() - tail.size()), entry.path()});
  }
  std::sort(backs.begin(), backs.end(), [](const Back& a, const Back& b) { return a.abi < b.abi; });
  return backs;
}

}  // namespace

Installation Installation::find() {
  Installation found;
  found.executable = resolved("/proc/self/exe");
  const fs::path prefix = fs::path(found.executable).parent_path().parent_path();
  for (const char* folder : {"lib", BESTRIDE_LIBDIR, "lib64"}) {
    const std::string path = prefix / folder / front_name;
    if (std::find(found.tried.begin(), found.tried.end(), path) != found.tried.end()) continue;
    found.tried.push_back(path);
    if (::access(path.c_str(), R_OK) != 0) continue;
    found.front = path;
    found.version = version_of(path);
    found.backs = backs_beside(path);
    break;
  }
  return found;
}

const Back* Installation::back(const std::string& abi) const {
  for (const Back& candidate : backs)
    if (candidate.abi == abi) return &candidate;
  return nullptr;
}

std::string Installation::why_no_front() const {
  std::string places;
  for (const std::string& path : tried) places += (places.empty() ? "" : ", ") + path;
  return "can't find libbestride.so (looked for " + places + "); install the command and the library under one prefix";
}

}  // namespace bestride
