// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading the files of a profile. Not by mapping them: if another process truncated a mapped file, an access would
// raise SIGBUS.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_allocator.hpp"
#include "base/result.hpp"

namespace bestride::inline perfmodel {

/// A profile or an image that is open for reading.
class InputFile {
 public:
  /// A regular file of at most 8 MiB, far more than any profile. The error is the cause alone.
  static Result<InputFile> open(const std::string& path);
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

/// The whole content. Throws std::bad_alloc.
Result<FileText> read_file_text(const std::string& path);

}  // namespace bestride::inline perfmodel
