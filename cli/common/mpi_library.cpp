// SPDX-License-Identifier: Apache-2.0
#include "cli/common/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "cli/common/shell.hpp"

namespace bestride::inline cli {
namespace {

struct KnownSoname {
  const char* soname;
  const char* abi;
};
/// MPICH and its ABI family (Intel MPI, MVAPICH, Cray) use .12; Open MPI 2 to 5 use .40, 1.x .20 and lower.
constexpr KnownSoname known[] = {
    {"libmpich.so.12", "mpich"}, {"libmpi.so.12", "mpich"},      {"libmpi.so.40", "openmpi"},
    {"libmpi.so.20", "openmpi"}, {"libmpi_abi.so.1", "mpi_abi"}, {"libmpi_abi.so.0", "mpi_abi"},
};

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Runs in the child: loads the library and writes its path, then its version.
void describe(int fd, const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!library) ::_exit(1);
  link_map* map = nullptr;
  ::dlinfo(library, RTLD_DI_LINKMAP, &map);
  std::string text = map ? map->l_name : file;
  text += "\n";
  if (const auto version = reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "MPI_Get_library_version"))) {
    static char buffer[65536];  // MPI_MAX_LIBRARY_VERSION_STRING is at most 8192 in known libraries
    int length = 0;
    version(buffer, &length);
    text += buffer;
  }
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
  ::_exit(0);  // skips the destructors of the library
}

}  // namespace

std::string abi_of_soname(const std::string& soname) {
  for (const KnownSoname& entry : known)
    if (soname == entry.soname) return entry.abi;
  // Cray names its MPICH after the compiler: libmpi_gnu_91.so.12.
  if (soname.starts_with("libmpi_") && soname.ends_with(".so.12")) return "mpich";
  return "";
}

std::string abi_of_version(const std::string& version) {
  if (contains(version, "Open MPI")) return "openmpi";
  for (const char* family : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"})
    if (contains(version, family)) return "mpich";
  return "";
}

MpiLibrary ask_mpi_library(const std::string& soname, const std::string& path) {
  MpiLibrary library{soname, "", "", abi_of_soname(soname)};
  const auto answer = in_child([&](int fd) { describe(fd, path.empty() ? soname : path); });
  if (!answer || answer->text.empty()) return library;
  const std::size_t end = std::min(answer->text.find('\n'), answer->text.size() - 1);
  library.path = answer->text.substr(0, end);
  library.version = answer->text.substr(end + 1);
  if (const std::string abi = abi_of_version(library.version); library.abi != "mpi_abi" && !abi.empty())
    library.abi = abi;
  return library;
}

std::vector<MpiLibrary> installed_mpi_libraries() {
  std::vector<MpiLibrary> found;
  for (const KnownSoname& entry : known)
    if (MpiLibrary library = ask_mpi_library(entry.soname, ""); !library.path.empty())
      found.push_back(std::move(library));
  return found;
}

std::map<std::string, std::string> loaded_libraries(const std::string& interpreter, const std::string& program) {
  if (!base_name(interpreter).starts_with("ld"))
    return {};  // a file may name any program as its interpreter; only a dynamic linker is run
  const auto listing = in_child([&](int) {
    ::unsetenv("LD_PRELOAD");                     // preloaded libraries are not part of the program
    ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);  // as ldd does; --list stops at the first missing library
    ::execl(interpreter.c_str(), interpreter.c_str(), program.c_str(), nullptr);
    ::_exit(127);
  });
  std::map<std::string, std::string> libraries;
  if (!listing || listing->exit_code != 0) return libraries;
  std::istringstream lines(listing->text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string soname, arrow, path;
    words >> soname >> arrow >> path;
    if (arrow == "=>") libraries[base_name(soname)] = path == "not" ? "" : path;
  }
  return libraries;
}

}  // namespace bestride::inline cli
