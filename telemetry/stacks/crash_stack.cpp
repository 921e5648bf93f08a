// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "telemetry/record/crash_file.hpp"
#include "telemetry/stacks/unwinder.hpp"

namespace bestride::inline telemetry {
namespace {

struct Contents {
  CrashHeader header;
  std::vector<unsigned char> stack;
  std::string map, text;
};

/// No program has memory below: vm.mmap_min_addr is not less without privileges.
constexpr std::uint64_t least_address = 4096;

/// A call through a null pointer ends where nothing can be unwound; the place of the call is known.
void leave_null_function(ThreadCopy& copy) {
  const std::uint64_t at = stack_pointer(copy.registers) - copy.stack_begin;
  std::uint64_t word = 0;
  if (program_counter(copy.registers) >= least_address || at > copy.stack.size() ||
      copy.stack.size() - at < sizeof word)
    return;
  std::memcpy(&word, copy.stack.data() + at, sizeof word);
  leave_function(copy.registers, word);
}

bool read_at(int file, void* to, std::size_t bytes, std::size_t offset) {
  return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

/// "" or what is wrong.
std::string read_contents(int file, Contents& to) {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return "is no file of this user";
  if (!read_at(file, &to.header, sizeof to.header, 0) || to.header.magic != crash_magic) return "is not whole";
  const std::uint64_t stack = to.header.stack_bytes, map = to.header.map_bytes;
  if (stack > crash_stack_bytes || map > most_crash_map_bytes || to.header.pid <= 0 || to.header.tid <= 0)
    return "is damaged";
  to.stack.resize(stack);
  to.map.resize(map);
  if (!read_at(file, to.stack.data(), stack, sizeof to.header) ||
      !read_at(file, to.map.data(), map, sizeof to.header + stack))
    return "is damaged";
  const std::size_t end = sizeof to.header + stack + map, size = static_cast<std::size_t>(status.st_size);
  to.text.resize(std::min(size - std::min(end, size), most_crash_text_bytes));
  if (!read_at(file, to.text.data(), to.text.size(), end)) return "is damaged";
  return "";
}

}  // namespace

Result<ProcessStacks> read_crash_stack(const std::string& path, int pid) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return Error{path + ": " + std::strerror(errno)};
  Contents contents;
  const std::string wrong = read_contents(file, contents);
  close(file);
  if (!wrong.empty()) return Error{path + " " + wrong};
  if (contents.header.pid != pid) return Error{path + " is of another process"};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> map(fmemopen(contents.map.data(), contents.map.size(), "r"),
                                                            &std::fclose);
  if (!map) return Error{path + ": " + std::strerror(errno)};
  const StackOptions options;
  Unwinder unwinder(pid, options.most_frames);
  if (const std::string why = unwinder.open_map(map.get()); !why.empty()) return Error{path + ": " + why};
  ProcessStacks result;
  result.pid = pid;
  ThreadCopy copy;
  copy.tid = contents.header.tid;
  copy.registers = contents.header.registers;
  copy.stack_begin = contents.header.stack_begin;
  copy.stack = std::move(contents.stack);
  // What is above the copy belongs to the stack, too, as far as can be known.
  copy.mapping = {copy.stack_begin, copy.stack_begin + (std::uint64_t{8} << 20)};
  leave_null_function(copy);
  ThreadStack& stack = result.threads.emplace_back();
  stack.tid = copy.tid;
  stack.main = copy.tid == pid;
  stack.interpreted = std::move(contents.text);
  unwinder.unwind(copy, stack);
  result.modules = unwinder.take_modules();
  return result;
}

}  // namespace bestride::inline telemetry
