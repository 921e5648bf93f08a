// SPDX-License-Identifier: Apache-2.0
#pragma once
// MappedAllocator: whole pages from the kernel instead of the heap, for arrays of 128 KiB and more that are freed
// again. MappedPtr: owns one such object.
//
// After a block of this size is freed, glibc allocates later blocks up to its size from the heap instead of mapping
// them (mallopt(3), M_MMAP_THRESHOLD). The application's own buffers then have other alignments, for which the kernel's
// copy between processes can take four times as long (128 KiB exchanged between two ranks on one host: 60 us instead of
// 14 us).
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace bestride {

template <class T>
struct MappedAllocator {
  using value_type = T;
  MappedAllocator() = default;
  template <class Other>
  MappedAllocator(const MappedAllocator<Other>&) noexcept {}

  T* allocate(std::size_t count) {
    void* const pages = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
  }
  void deallocate(T* pages, std::size_t count) noexcept { ::munmap(pages, count * sizeof(T)); }
  template <class Other>
  bool operator==(const MappedAllocator<Other>&) const noexcept {
    return true;
  }
};

template <class T>
struct Unmap {
  void operator()(T* object) const noexcept {
    std::destroy_at(object);
    MappedAllocator<T>().deallocate(object, 1);
  }
};
template <class T>
using MappedPtr = std::unique_ptr<T, Unmap<T>>;
/// Throws std::bad_alloc. The constructor must not throw.
template <class T, class... Arguments>
MappedPtr<T> make_mapped(Arguments&&... arguments) {
  return MappedPtr<T>(::new (MappedAllocator<T>().allocate(1)) T(std::forward<Arguments>(arguments)...));
}

}  // namespace bestride
