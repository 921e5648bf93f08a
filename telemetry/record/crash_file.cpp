// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/crash_file.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace bestride::inline telemetry {
namespace {

/// Bytes that were written: fewer if memory from some address on can't be read, or if there is no space.
std::size_t write_memory(int file, std::uint64_t from, std::size_t bytes) noexcept {
  constexpr std::size_t page = 4096;
  std::size_t written = 0;
  while (written < bytes) {
    const std::uint64_t at = from + written;
    // Up to the end of a page, since write() may not say how much of several could be read.
    const std::size_t part = std::min<std::size_t>(bytes - written, page - at % page);
    // Not by write(), which AddressSanitizer replaces: it would report that the stack has gaps.
    if (syscall(SYS_write, file, at, part) != static_cast<long>(part)) break;
    written += part;
  }
  return written;
}

std::size_t copy_map(int to) noexcept {
  const int from = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
  if (from < 0) return 0;
  static char part[4096];  // only the first thread that crashes comes here
  std::size_t copied = 0;
  for (;;) {
    const ssize_t length = read(from, part, sizeof part);
    if (length <= 0 || copied + static_cast<std::size_t>(length) > most_crash_map_bytes) break;
    if (write(to, part, static_cast<std::size_t>(length)) != length) break;
    copied += static_cast<std::size_t>(length);
  }
  close(from);
  return copied;
}

}  // namespace

bool write_crash_file(const char* path, const ucontext_t& context, void (*write_text)(int file)) noexcept {
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  CrashHeader header{};
  header.pid = getpid();
  header.tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  header.registers = registers_of(context);
  bool whole = write(file, &header, sizeof header) == static_cast<ssize_t>(sizeof header);
  if (whole) {
    header.stack_begin = stack_pointer(header.registers) - red_zone;
    header.stack_bytes = write_memory(file, header.stack_begin, crash_stack_bytes);
    // After an overflow the stack pointer is below the stack, by less than a page unless a frame is large.
    if (header.stack_bytes == 0) {
      header.stack_begin = (header.stack_begin | 4095) + 1;
      header.stack_bytes = write_memory(file, header.stack_begin, crash_stack_bytes);
    }
    header.map_bytes = copy_map(file);
    header.magic = crash_magic;
    whole = header.map_bytes > 0 && pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  }
  if (whole && write_text) write_text(file);
  close(file);
  return whole;
}

}  // namespace bestride::inline telemetry
