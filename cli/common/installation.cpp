// SPDX-License-Identifier: Apache-2.0
#include "cli/common/installation.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/common/shell.hpp"

namespace bestride::inline cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* preload_name = "libbestride.so";

/// Called in a child process, because nothing else needs the library to be loaded into this process.
std::string version_of(const std::string& preload) {
  const auto answer = in_child([&](int fd) {
    void* const object = ::dlopen(preload.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!object) return;
    const auto version = reinterpret_cast<const char* (*)()>(::dlsym(object, "bestride_version"));
    if (!version) return;
    const std::string text = version();
    [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
  });
  return answer && answer->exit_code == 0 ? answer->text : "";
}

std::vector<Backend> backends_beside(const fs::path& preload) {
  std::vector<Backend> backends;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(preload.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    constexpr std::string_view head = "libbestride-", tail = ".so";
    if (name.size() > head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail))
      backends.push_back({name.substr(head.size(), name.size() - head.size() - tail.size()), entry.path()});
  }
  std::sort(backends.begin(), backends.end(), [](const Backend& a, const Backend& b) { return a.abi < b.abi; });
  return backends;
}

}  // namespace

Installation Installation::find() {
  Installation found;
  // Without /proc, the path by which the kernel was told to start this program.
  const char* const started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  found.executable = resolved(::access("/proc/self/exe", F_OK) == 0 || !started ? "/proc/self/exe" : started);
  const fs::path prefix = fs::path(found.executable).parent_path().parent_path();
  for (const char* folder : {"lib", BESTRIDE_LIBDIR, "lib64"}) {
    const std::string path = prefix / folder / preload_name;
    if (std::find(found.tried.begin(), found.tried.end(), path) != found.tried.end()) continue;
    found.tried.push_back(path);
    if (::access(path.c_str(), R_OK) != 0) continue;
    found.preload = path;
    found.version = version_of(path);
    found.backends = backends_beside(path);
    break;
  }
  return found;
}

const Backend* Installation::backend(const std::string& abi) const {
  for (const Backend& candidate : backends)
    if (candidate.abi == abi) return &candidate;
  return nullptr;
}

std::string Installation::why_no_preload() const {
  // ld.so splits LD_PRELOAD at blanks and colons and provides no quoting.
  if (preload.find_first_of(" :\t\n") != std::string::npos)
    return "the path '" + preload +
           "' has a blank or a colon, which LD_PRELOAD can't name; install it under another path";
  if (!preload.empty()) return "";
  std::string places;
  for (const std::string& path : tried) places += (places.empty() ? "" : ", ") + path;
  return "can't find libbestride.so (looked for " + places + "); install the command and the library under one prefix";
}

std::string why_no_backend(const std::string& abi) {
  if (abi == "mpich")
    return "libbestride-mpich.so is not beside the library, so every call goes directly to MPI; install the library "
           "again";
  return "MPI libraries with the ABI " + abi +
         " are not supported yet, so every call goes directly to MPI; use MPICH or a library with its ABI (Intel MPI, "
         "MVAPICH, Cray MPICH)";
}

}  // namespace bestride::inline cli
