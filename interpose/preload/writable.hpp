// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes data of a loaded object writable for a moment: symbol tables, and pointers that the linker has made read-only
// after relocation. Calls no function of libc.
#include <cstddef>
#include <cstdint>

#include "interpose/preload/loaded_object.hpp"

namespace bestride::preload {

/// The bytes [address, address + length) are writable while this exists and operator bool is true. It is false if they
/// are not data of the object, or if the system refuses. Other objects on the same pages keep their access rights, and
/// other threads may read meanwhile.
class Writable {
 public:
  Writable(const LoadedObject& object, const void* address, std::size_t length) noexcept;
  ~Writable();
  Writable(const Writable&) = delete;
  explicit operator bool() const noexcept { return writable_; }

 private:
  std::uintptr_t begin_ = 0;
  std::size_t length_ = 0;
  int access_ = 0;  ///< before and after
  bool writable_ = false;
};

}  // namespace bestride::preload
