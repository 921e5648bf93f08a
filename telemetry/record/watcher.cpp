// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/watcher.hpp"

#include <unistd.h>

#include <cstdlib>

#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

std::string watcher_name(const std::string& host, int pid, std::uint64_t start_time) {
  return host + ":" + std::to_string(pid) + ":" + std::to_string(start_time);
}

}  // namespace

std::string own_host() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string own_watcher_name() { return watcher_name(own_host(), getpid(), own_start_time()); }

bool watcher_is_here(const std::string& watcher) {
  const std::string host = own_host() + ":";
  if (watcher.compare(0, host.size(), host) != 0) return false;
  const int pid = std::atoi(watcher.c_str() + host.size());
  const ProcessStatus status = process_status(pid);
  return status.exists && watcher == watcher_name(own_host(), pid, status.start_time);
}

}  // namespace bestride::inline telemetry
