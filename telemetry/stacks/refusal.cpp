// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/refusal.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace bestride::inline telemetry {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

TraceFacts trace_facts(int pid, int tid, int error) {
  TraceFacts facts{pid, error, 0, "", 0, geteuid(), -1};
  const std::string process = "/proc/" + std::to_string(pid);
  std::ifstream status(process + "/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) facts.tracer = std::atoi(line.c_str() + std::strlen("TracerPid:"));
    // Real, effective, saved and file system user. The owner of /proc/PID is root if the process is not dumpable.
    if (line.starts_with("Uid:")) {
      char* at = nullptr;
      std::strtoul(line.c_str() + std::strlen("Uid:"), &at, 10);
      facts.owner = static_cast<unsigned>(std::strtoul(at, nullptr, 10));
    }
  }
  if (facts.tracer > 0) facts.tracer_name = first_line("/proc/" + std::to_string(facts.tracer) + "/comm");
  if (const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope"); !scope.empty())
    facts.yama = std::atoi(scope.c_str());
  return facts;
}

std::string refusal_text(const TraceFacts& facts) {
  const std::string text = "process " + std::to_string(facts.pid) + " can't be traced: ";
  if (facts.error != EPERM && facts.error != EACCES) return text + std::strerror(facts.error);
  if (facts.tracer > 0)
    return text + "process " + std::to_string(facts.tracer) +
           (facts.tracer_name.empty() ? "" : " (" + facts.tracer_name + ")") + " traces it; end that one first";
  if (facts.user != 0 && facts.owner != facts.user)
    return text + "it belongs to user " + std::to_string(facts.owner) + "; run this as that user or as root";
  if (facts.yama >= 3) return text + "kernel.yama.ptrace_scope is 3, which can't be changed until the host restarts";
  if (facts.user != 0 && facts.yama == 2)
    return text + "kernel.yama.ptrace_scope is 2; run this as root, or ask for 'sysctl kernel.yama.ptrace_scope=0'";
  if (facts.user != 0 && facts.yama == 1)
    return text +
           "kernel.yama.ptrace_scope is 1, so only a parent may trace; run this as root, or ask for 'sysctl "
           "kernel.yama.ptrace_scope=0'";
  return text + std::strerror(facts.error) +
         "; a container needs the capability SYS_PTRACE ('--cap-add SYS_PTRACE'), a program that is set-user-ID or "
         "not dumpable needs root";
}

}  // namespace bestride::inline telemetry
