// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guarded: test memory that ends at an inaccessible page.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace bestride::test {

/// `size` bytes directly before or directly after an inaccessible page, at a chosen distance from it.
class Guarded {
 public:
  enum class Side { before_wall, after_wall };
  Guarded(std::int64_t size, Side side, std::int64_t slack = 0) : size_(static_cast<std::size_t>(size)) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (size_ + static_cast<std::size_t>(slack) + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    base_ = static_cast<unsigned char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page, inner, PROT_READ | PROT_WRITE);
    data_ = side == Side::before_wall ? base_ + page + inner - size_ - slack : base_ + page + slack;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::size_t mapped_;
  unsigned char* base_;
  unsigned char* data_;
};

}  // namespace bestride::test
