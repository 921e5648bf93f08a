// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/descendants.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace bestride::inline cli {
namespace {

namespace fs = std::filesystem;

/// The parent of each process that is no zombie.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = static_cast<pid_t>(::atoi(entry->path().filename().c_str()));
    if (pid <= 0) continue;
    std::ifstream stat(entry->path() / "stat");
    // "pid (name) state parent ..."; the name may contain anything.
    const std::string text(std::istreambuf_iterator<char>(stat), {});
    const std::size_t behind = text.rfind(')');
    if (behind == std::string::npos || behind + 4 >= text.size() || text[behind + 2] == 'Z') continue;
    found[pid] = static_cast<pid_t>(::atoi(text.c_str() + behind + 4));
  }
  return found;
}

bool descends(pid_t pid, const std::map<pid_t, pid_t>& parents) {
  for (int depth = 0; depth < 1000; ++depth) {
    const auto parent = parents.find(pid);
    if (parent == parents.end()) return false;
    if (parent->second == ::getpid()) return true;
    pid = parent->second;
  }
  return false;
}

/// Not to be ended.
std::set<pid_t> spared;

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  spared.clear();
  const auto all = parents();
  for (const auto& [pid, parent] : all)
    if (descends(pid, all)) spared.insert(pid);
}

void kill_descendants() {
  // A process may start another one until it is killed, so this is repeated. One in an uninterruptible call stays.
  constexpr int most_attempts = 1000;
  bool any = true;
  std::set<pid_t> killed;
  for (int attempt = 0; any && attempt < most_attempts; ++attempt) {
    any = false;
    const auto all = parents();
    for (const auto& [pid, parent] : all)
      if (descends(pid, all) && !spared.contains(pid)) any |= ::kill(pid, SIGKILL) == 0 && killed.insert(pid).second;
    if (any) ::usleep(1000);
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace bestride::inline cli
