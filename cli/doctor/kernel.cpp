// SPDX-License-Identifier: Apache-2.0
// The doctor's check of system calls that ranks use among themselves and that a policy may forbid: a seccomp filter of
// a container, kernel.yama.ptrace_scope. A filter may also end the process, so each is tried in a child.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "cli/common/shell.hpp"
#include "cli/doctor/checks.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* kernel_check = "kernel";
constexpr int killed = -1;

/// What `call` returns, 0 or an errno; `killed` if it ends the process.
int try_call(const std::function<int()>& call) {
  const auto output = in_child([&](int) { ::_exit(call()); });
  return !output || output->exit_code < 0 ? killed : output->exit_code;
}

int make_memory_file() { return ::memfd_create("bestride", MFD_CLOEXEC) < 0 ? errno : 0; }

/// Reads from the memory of a process that is no descendant, as one rank from another.
int read_from_sibling() {
  static volatile char byte = 1;
  const pid_t sibling = ::fork();
  if (sibling < 0) return 0;  // nothing is known
  if (sibling == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const pid_t reader = ::fork();
  if (reader == 0) {
    char copy = 0;
    const iovec here{&copy, 1}, there{const_cast<char*>(&byte), 1};
    ::_exit(::process_vm_readv(sibling, &here, 1, &there, 1, 0) == 1 ? 0 : errno);
  }
  int status = 0;
  while (::waitpid(reader, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(sibling, SIGKILL);
  ::waitpid(sibling, nullptr, 0);
  if (!WIFEXITED(status)) ::kill(::getpid(), SIGKILL);
  return WEXITSTATUS(status);
}

std::string cause_text(int error) { return std::string(" fails (") + std::strerror(error) + "): "; }

/// Why the kernel refuses to read from another process, and what allows it.
std::string why_no_copies() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope > 0)
    return "kernel.yama.ptrace_scope is " + std::to_string(scope) + "; 0 allows it, or the capability SYS_PTRACE";
  return "a seccomp filter or a container forbids it; the capability SYS_PTRACE allows it (docker run --cap-add "
         "SYS_PTRACE)";
}

}  // namespace

void check_kernel(Findings& findings) {
  const int memory = try_call(make_memory_file), copies = try_call(read_from_sibling);
  const std::string kills = " ends the process: a seccomp filter kills those that call it; allow it there, or set ";
  if (memory == killed)
    findings.problem(kernel_check, "memfd_create" + kills + "BESTRIDE_DISABLE=1");
  else if (memory != 0)
    findings.note(kernel_check, "memfd_create" + cause_text(memory) +
                                    "ranks share memory through files in /dev/shm instead; a seccomp filter or a "
                                    "container forbids it");
  if (copies == killed)
    findings.problem(kernel_check, "process_vm_readv" + kills + "BESTRIDE_DISABLE=1");
  else if (copies != 0)
    findings.note(kernel_check, "process_vm_readv" + cause_text(copies) +
                                    "neighbor collectives of long messages copy twice; " + why_no_copies());
  if (memory == 0 && copies == 0)
    findings.ok(kernel_check, "ranks can share memory (memfd_create) and copy from each other (process_vm_readv)");
}

}  // namespace bestride::inline cli
