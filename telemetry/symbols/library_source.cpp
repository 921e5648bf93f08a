// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "telemetry/symbols/symbolizer.hpp"

namespace bestride::inline telemetry {
namespace {

/// ".../lib/python3.11/threading.py"; a folder of the user, ".../lib/python/", has no version.
bool is_in_python_library(const std::string& file) {
  for (const std::string folder : {"/lib/python", "/lib64/python"})
    if (const std::size_t at = file.find(folder); at != std::string::npos && at + folder.size() < file.size())
      if (std::isdigit(static_cast<unsigned char>(file[at + folder.size()]))) return true;
  return false;
}

}  // namespace

bool is_library_source(const std::string& file) {
  const auto begins = [&](const char* with) { return file.starts_with(with); };
  const auto contains = [&](const char* part) { return file.find(part) != std::string::npos; };
  if (begins("/usr/include/") || begins("/usr/local/include/") || begins("/usr/lib") || begins("<frozen ")) return true;
  if (contains("/include/c++/") || contains("/lib/gcc/") || contains("/site-packages/") || contains("/dist-packages/"))
    return true;
  const bool cython = file.ends_with(".pyx") || file.ends_with(".pxi");
  return is_in_python_library(file) || (cython && contains("mpi4py/"));
}

}  // namespace bestride::inline telemetry
