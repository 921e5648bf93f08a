// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file_size_limit.hpp"
#include "base/not_cancelled.hpp"

namespace bestride::inline collectives {
namespace {

/// The magic number is in a separate page after the data.
constexpr std::size_t page = 4096;
std::size_t whole(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page + page; }

/// Allocates the pages of a file. In pieces, because a call that is interrupted by a signal frees what it has
/// allocated.
bool reserve(int descriptor, std::size_t first, std::size_t last) noexcept {
  constexpr std::size_t piece = std::size_t{1} << 20;
  while (first < last) {
    const std::size_t bytes = std::min(piece, last - first);
    const int error = posix_fallocate(descriptor, static_cast<off_t>(first), static_cast<off_t>(bytes));
    if (error == EINTR) continue;
    if (error != 0) return false;
    first += bytes;
  }
  return true;
}

/// The same file under a number above 2: a program that has closed its standard error may still write there.
int above_standard_error(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(descriptor);
  return moved;
}

/// A file without a name. A seccomp filter of a container may forbid memfd_create.
int create_file() noexcept {
  const int memory = memfd_create("bestride", MFD_CLOEXEC);
  return above_standard_error(memory >= 0 ? memory : ::open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
}

std::byte* map(int descriptor, std::size_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Window::Window(Window&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), key_(std::exchange(other.key_, {})) {}

Window& Window::operator=(Window&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(key_, other.key_);
  return *this;
}

Window::~Window() {
  close_descriptor();
  if (memory_) munmap(memory_, key_.bytes);
}

Window Window::create(std::size_t bytes, Pages pages) noexcept {
  const NotCancelled not_cancelled;
  Window window;
  // Without this limit, the reservation could exhaust the machine's memory and harm other processes.
  struct sysinfo machine;
  if (sysinfo(&machine) != 0 || bytes > machine.totalram / 8 * machine.mem_unit) return window;
  const std::size_t all = whole(bytes);
  if (!within_file_size_limit(all)) return window;
  const int descriptor = create_file();
  if (descriptor < 0) return window;
  std::byte* memory = TEMP_FAILURE_RETRY(ftruncate(descriptor, static_cast<off_t>(all))) == 0 &&
                              reserve(descriptor, pages == Pages::reserved ? 0 : all - page, all)
                          ? map(descriptor, all)
                          : nullptr;
  if (!memory) {
    close(descriptor);
    return window;
  }
  window.memory_ = memory;
  window.key_ = {getpid(), descriptor, all, 0};
  if (getrandom(&window.key_.magic, sizeof window.key_.magic, 0) != sizeof window.key_.magic)
    window.key_.magic = reinterpret_cast<std::uintptr_t>(memory) ^ static_cast<std::uint64_t>(getpid()) << 40;
  std::memcpy(memory + all - page, &window.key_.magic, sizeof window.key_.magic);
  return window;
}

Window Window::open(const WindowKey& key, Pages pages) noexcept {
  const NotCancelled not_cancelled;
  Window window;
  if (key.descriptor < 0) return window;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld", static_cast<long long>(key.process),
                static_cast<long long>(key.descriptor));
  const int descriptor = above_standard_error(static_cast<int>(TEMP_FAILURE_RETRY(::open(path, O_RDWR | O_CLOEXEC))));
  if (descriptor < 0) return window;
  // In another container this process ID may belong to another process, and the descriptor may be any file.
  if (key.bytes >= page && lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(key.bytes))
    if (std::byte* memory = map(descriptor, key.bytes)) {
      if (std::memcmp(memory + key.bytes - page, &key.magic, sizeof key.magic) == 0) {
        window.memory_ = memory;
        window.key_ = key;
        window.key_.descriptor = descriptor;
        if (pages == Pages::reserved) window.close_descriptor();
        return window;
      }
      munmap(memory, key.bytes);
    }
  close(descriptor);
  return window;
}

void Window::close_descriptor() noexcept {
  const NotCancelled not_cancelled;  // also a thread that completes a collective frees communicators' memory
  if (key_.descriptor >= 0) close(static_cast<int>(key_.descriptor));
  key_.descriptor = -1;
}

}  // namespace bestride::inline collectives
