// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/watcher.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/fnv1a.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

/// Differs between processes that do not see each other's records: those of other users, or with another /dev/shm.
std::uint32_t records_id() {
  struct stat status {};
  if (stat(record_root, &status) != 0) status = {};
  std::uint64_t hash = fnv1a_start;
  for (const std::uint64_t value :
       {std::uint64_t{status.st_dev}, std::uint64_t{status.st_ino}, std::uint64_t{geteuid()}})
    hash = fnv1a(hash, value);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

std::string watcher_name(int pid, std::uint64_t start_time) {
  char records[9];
  std::snprintf(records, sizeof records, "%08x", records_id());
  return own_host() + ":" + std::to_string(pid) + ":" + std::to_string(start_time) + ":" + records;
}

}  // namespace

std::string own_host() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string own_watcher_name() { return watcher_name(getpid(), own_start_time()); }

bool watcher_is_here(const std::string& watcher) {
  const std::string host = own_host() + ":";
  if (watcher.compare(0, host.size(), host) != 0) return false;
  const int pid = std::atoi(watcher.c_str() + host.size());
  const ProcessStatus status = process_status(pid);
  return status.exists && watcher == watcher_name(pid, status.start_time);
}

}  // namespace bestride::inline telemetry
