// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file_size_limit.hpp"

namespace bestride {

namespace {

std::string temporary_of(const std::string& path) { return path + "." + std::to_string(::getpid()) + ".tmp"; }

int create(const std::string& temporary) {
  return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

}  // namespace

Result<bool> replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = temporary_of(path);
  const auto failed = [&](const char* what) {
    const std::string cause = std::strerror(errno);
    ::unlink(temporary.c_str());
    return Error{std::string(what) + " '" + path + "': " + cause};
  };
  if (!within_file_size_limit(text.size())) {
    errno = EFBIG;
    return failed("can't write");
  }
  const int fd = create(temporary);
  if (fd < 0) return failed("can't write");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      ::close(fd);
      return failed("can't write");
    }
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(fd) != 0 || ::close(fd) != 0) return failed("can't write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("can't rename to");
  return true;
}

std::string why_not_writable(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return S_ISDIR(info.st_mode) ? std::strerror(EISDIR) : "it is no regular file";
  const std::string temporary = temporary_of(path);
  const int fd = create(temporary);
  if (fd < 0) return std::strerror(errno);
  ::close(fd);
  ::unlink(temporary.c_str());
  return "";
}

}  // namespace bestride
