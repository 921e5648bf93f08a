// SPDX-License-Identifier: Apache-2.0
// take_stacks() of a live process.
#include <fcntl.h>
#include <unistd.h>

#include "telemetry/stacks/unwinder.hpp"

namespace bestride::inline telemetry {
namespace {

std::string thread_name(int pid, int tid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm";
  char text[64];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text, sizeof text) : 0;
  if (file >= 0) close(file);
  return length > 1 ? std::string(text, static_cast<std::size_t>(length) - 1) : "";
}

std::string executable_of(int pid) {
  char path[4096];
  const ssize_t length = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

}  // namespace

bool stacks_available() noexcept { return true; }

Result<ProcessStacks> take_stacks(int pid, const StackOptions& options) {
  const Result<ProcessCopy> copies = copy_threads(pid, options);
  if (!copies) return copies.error();
  ProcessStacks result;
  result.pid = pid;
  result.executable = executable_of(copies->leading_tid);
  result.longest_stop = copies->longest_stop;
  result.all_stops = copies->all_stops;
  Unwinder unwinder(copies->leading_tid, options.most_frames);
  if (const std::string why = unwinder.open_process(); !why.empty())
    return Error{"the libraries of process " + std::to_string(pid) + " can't be read, it may have ended: " + why};
  for (const ThreadCopy& copy : copies->threads) {
    ThreadStack& stack = result.threads.emplace_back();
    stack.tid = copy.tid;
    stack.main = copy.tid == pid;
    stack.name = thread_name(pid, copy.tid);
    stack.problem = copy.problem;
    if (stack.problem.empty()) unwinder.unwind(copy, stack);
  }
  result.modules = unwinder.take_modules();
  return result;
}

}  // namespace bestride::inline telemetry
