// SPDX-License-Identifier: Apache-2.0
#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bestride {
namespace {

/// "" for a regular file.
const char* kind_of(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG: return "";
    case S_IFIFO: return "a FIFO";
    case S_IFDIR: return "a directory";
    case S_IFSOCK: return "a socket";
    default: return "a device";
  }
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path, std::size_t most) {
  // O_NONBLOCK: a FIFO without a writer would block.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Error{std::strerror(errno)};
  InputFile file(fd, 0);
  struct stat status;
  if (::fstat(fd, &status) != 0) return Error{std::strerror(errno)};
  if (const char* const kind = kind_of(status.st_mode); *kind) return Error{std::string("is ") + kind + ", not a file"};
  if (status.st_size > static_cast<off_t>(most)) {
    const bool mib = most >= std::size_t{1} << 20;
    return Error{"has more than " + std::to_string(most >> (mib ? 20 : 10)) + (mib ? " MiB" : " KiB")};
  }
  file.size_ = static_cast<std::size_t>(status.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::size_t InputFile::read(void* to, std::size_t bytes) noexcept {
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::read(fd_, static_cast<std::byte*>(to) + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

Result<FileText> read_file_text(const std::string& path, std::size_t most) {
  Result<InputFile> file = InputFile::open(path, most);
  if (!file) return file.error();
  FileText text(file->size());
  text.resize(file->read(text.data(), text.size()));
  return text;
}

const char* not_a_file(const std::string& path) noexcept {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? kind_of(status.st_mode) : "";
}

}  // namespace bestride
