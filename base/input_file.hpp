// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading a file that the user names. The path may be that of a FIFO, a device or a directory by mistake, or of a file
// without end: reading it would block the job or fill its memory. Files are not mapped: if another process truncated a
// mapped file, an access would raise SIGBUS.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_allocator.hpp"
#include "base/result.hpp"

namespace bestride {

class InputFile {
 public:
  /// A regular file of at most `most` bytes. The error is the cause alone, "is a FIFO, not a file". Never blocks.
  static Result<InputFile> open(const std::string& path, std::size_t most);
  InputFile(InputFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  std::size_t size() const noexcept { return size_; }
  /// Reads the next `bytes` bytes, or those that are left. Returns their number.
  std::size_t read(void* to, std::size_t bytes) noexcept;

 private:
  InputFile(int fd, std::size_t size) noexcept : fd_(fd), size_(size) {}
  int fd_;
  std::size_t size_;
};

/// Not on the heap: see base/mapped_allocator.hpp.
using FileText = std::vector<char, MappedAllocator<char>>;

/// The whole content of a file, which InputFile::open() accepts. Throws std::bad_alloc.
Result<FileText> read_file_text(const std::string& path, std::size_t most);

/// What is at `path`: "" for a regular file or if that can't be found out, else "a FIFO", "a directory", "a device", "a
/// socket". For a path that another function will open.
const char* not_a_file(const std::string& path) noexcept;

}  // namespace bestride
