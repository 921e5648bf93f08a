// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/forbidden_call.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace bestride::inline telemetry {
namespace {

bool has_filter() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Seccomp:")) return line.ends_with("2");
  return true;  // not known
}

}  // namespace

bool call_is_deadly(long number) noexcept try {
  if (!has_filter()) return false;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    syscall(number, -1L, -1L, 0L, 0L, 0L, 0L);
    _exit(0);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFSIGNALED(status);
} catch (...) {
  return false;
}

}  // namespace bestride::inline telemetry
