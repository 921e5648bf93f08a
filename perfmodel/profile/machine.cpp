// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/machine.hpp"

#include <unistd.h>

#include <cstdio>

#include "kernels/packer.hpp"

namespace bestride::inline perfmodel {
namespace {

/// The value of the first line "<key>...: <value>" of a text.
std::string value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1), last = line.find_last_not_of(" \t\r");
    return first == std::string_view::npos ? "" : std::string(line.substr(first, last - first + 1));
  }
  return "";
}

/// The first processor's section of /proc/cpuinfo, read without iostreams because this code is part of the preload
/// library.
std::string cpu_model() {
  char text[4096];
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (!file) return "unknown CPU";
  const std::size_t length = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  const std::string_view all(text, length);
  std::string model = value_of(all, "model name");
  if (model.empty()) model = value_of(all, "CPU part");  // the field on AArch64
  return model.empty() ? "unknown CPU" : model;
}

std::string host_class() {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN), l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE),
             l3 = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  char text[96];
  std::snprintf(text, sizeof text, "%ld cores, L2 %ld KiB, L3 %ld KiB", cores, l2 / 1024, l3 / 1024);
  return text;
}

}  // namespace

std::string short_mpi_version(std::string_view text) {
  const std::string mpich = value_of(text, "MPICH Version");
  if (!mpich.empty()) {
    const std::string device = value_of(text, "MPICH Device");
    return "MPICH " + mpich + (device.empty() ? "" : " " + device);
  }
  return std::string(text.substr(0, std::min(text.find('\n'), text.size())));
}

MachineFingerprint fingerprint_here(std::string_view mpi_library_version) {
  MachineFingerprint here;
  here.cpu = cpu_model() + ", " + std::string(name(widest_isa()));
  here.mpi_library = short_mpi_version(mpi_library_version);
  here.host_class = host_class();
  here.bestride = BESTRIDE_VERSION;
  return here;
}

}  // namespace bestride::inline perfmodel
