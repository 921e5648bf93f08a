// SPDX-License-Identifier: Apache-2.0
#include "cpu_group.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace fault_lab {
namespace {

constexpr const char* root = "/sys/fs/cgroup";

/// Writes `text` to a file of the group.
bool put(const char* folder, const char* name, const char* text) {
  char path[640];
  std::snprintf(path, sizeof path, "%s/%s", folder, name);
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text, std::strlen(text)) == ssize_t(std::strlen(text));
  close(file);
  return written;
}

/// The group of `process` in which the controller `cpu` is: a folder. False if it can't be found.
bool find_group(int process, char (&folder)[384], bool& second_version) {
  char path[64], line[320];
  std::snprintf(path, sizeof path, "/proc/%d/cgroup", process);
  std::FILE* const file = std::fopen(path, "r");
  if (!file) return false;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file)) {
    line[std::strcspn(line, "\n")] = 0;
    const char* const controllers = std::strchr(line, ':');
    const char* const group = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    if (!group) continue;
    const int length = int(group - controllers - 1);
    const bool first = std::strncmp(controllers + 1, "cpu", 3) == 0 && (length == 3 || controllers[4] == ',');
    if (!first && length > 0) continue;
    std::snprintf(folder, sizeof folder, first ? "%s/cpu%s" : "%s%s", root, group + 1);
    struct stat about {};
    found = stat(folder, &about) == 0;
    second_version = !first;
  }
  std::fclose(file);
  return found;
}

}  // namespace

bool CpuGroup::limit(int process, int percent) {
  bool second_version = false;
  if (!find_group(process, parent_, second_version)) return false;
  std::snprintf(folder_, sizeof folder_, "%s/fault_lab.%d", parent_, process);
  if (mkdir(folder_, 0755) != 0) return folder_[0] = 0, false;
  char quota[32];
  std::snprintf(quota, sizeof quota, second_version ? "%d000 100000" : "%d000", percent);
  std::snprintf(process_, sizeof process_, "%d", process);
  const bool limited =
      put(folder_, second_version ? "cpu.max" : "cpu.cfs_quota_us", quota) && put(folder_, "cgroup.procs", process_);
  if (!limited) remove();
  return limited;
}

void CpuGroup::remove() {
  const timespec pause{0, 10'000'000};
  for (int attempt = 0; folder_[0] && attempt < 100; ++attempt) {
    put(parent_, "cgroup.procs", process_);
    if (rmdir(folder_) == 0) break;
    nanosleep(&pause, nullptr);
  }
  folder_[0] = 0;
}

}  // namespace fault_lab
