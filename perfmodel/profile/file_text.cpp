// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/file_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bestride::inline perfmodel {

Result<InputFile> InputFile::open(const std::string& path) {
  // O_NONBLOCK, in case the path is that of a FIFO or a device by mistake.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error{std::strerror(errno)};
  InputFile file(fd, 0);
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return Error{"not a file"};
  if (status.st_size > off_t{8} << 20) return Error{"larger than any profile"};
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

Result<FileText> read_file_text(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  FileText text(file->size());
  text.resize(file->read(text.data(), text.size()));
  return text;
}

}  // namespace bestride::inline perfmodel
