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

/// A new file beside `path`. A name may be taken: by a process of another host with the same pid, or by one that was
/// killed.
struct Temporary {
  std::string name;
  int file = -1;  ///< open for writing; -1: can't be created, see errno
};

Temporary create_beside(const std::string& path) {
  constexpr int most_names = 100;
  Temporary made;
  for (int i = 0; made.file < 0 && i < most_names && (i == 0 || errno == EEXIST); ++i) {
    made.name = path + "." + std::to_string(::getpid()) + (i > 0 ? "." + std::to_string(i) : "") + ".tmp";
    made.file = ::open(made.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  return made;
}

}  // namespace

Result<bool> replace_file(const std::string& path, const std::string& text) {
  const auto cant = [&](const char* what) {
    return Error{std::string(what) + " '" + path + "': " + std::strerror(errno)};
  };
  if (!within_file_size_limit(text.size())) {
    errno = EFBIG;
    return cant("can't write");
  }
  const auto [temporary, fd] = create_beside(path);
  if (fd < 0) return cant("can't write");
  const auto failed = [&, &temporary = temporary](const char* what) {
    const Error error = cant(what);
    ::unlink(temporary.c_str());
    return error;
  };
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
  const auto [temporary, fd] = create_beside(path);
  if (fd < 0) return std::strerror(errno);
  ::close(fd);
  ::unlink(temporary.c_str());
  return "";
}

}  // namespace bestride
