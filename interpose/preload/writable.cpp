// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/writable.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "interpose/preload/system_call.hpp"

namespace bestride::preload {
namespace {

constexpr std::uintptr_t page_sizes[] = {1 << 12, 1 << 14, 1 << 16};

/// The program headers of an object, which linkers place in its first page; empty if they are not there.
struct Segments {
  explicit Segments(std::uintptr_t base) noexcept {
    unsigned char resident;
    if (base == 0 || system_call(SYS_mincore, base, 1, reinterpret_cast<std::uintptr_t>(&resident)) != 0) return;
    const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(base);
    if (header->e_ident[EI_MAG0] != ELFMAG0 || header->e_ident[EI_MAG1] != ELFMAG1 ||
        header->e_ident[EI_MAG2] != ELFMAG2 || header->e_ident[EI_MAG3] != ELFMAG3 ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > page_sizes[0])
      return;
    first = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
    count = header->e_phnum;
  }
  /// The segment of a type that contains the bytes; nullptr if there is none.
  const ElfW(Phdr) * find(std::uint32_t type, std::uintptr_t offset, std::size_t length) const noexcept {
    for (unsigned i = 0; i < count; ++i)
      if (first[i].p_type == type && offset >= first[i].p_vaddr && length <= first[i].p_memsz &&
          offset - first[i].p_vaddr <= first[i].p_memsz - length)
        return &first[i];
    return nullptr;
  }
  const ElfW(Phdr) * first = nullptr;
  unsigned count = 0;
};

int access_of(const ElfW(Phdr) & segment) noexcept {
  return (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
         (segment.p_flags & PF_X ? PROT_EXEC : 0);
}

}  // namespace

Writable::Writable(const LoadedObject& object, const void* address, std::size_t length) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Segments segments(object.base);
  const ElfW(Phdr)* const segment = segments.find(PT_LOAD, at - object.base, length);
  if (!segment) return;
  access_ = segments.find(PT_GNU_RELRO, at - object.base, length) ? PROT_READ : access_of(*segment);
  if (access_ & PROT_WRITE) {
    writable_ = true;
    return;
  }
  // The system rejects an address that is not at the beginning of a page.
  long result = -EINVAL;
  for (const std::uintptr_t page : page_sizes) {
    begin_ = at / page * page;
    length_ = at + length - begin_;
    result = system_call(SYS_mprotect, begin_, length_, static_cast<std::uintptr_t>(access_ | PROT_WRITE));
    if (result != -EINVAL) break;
  }
  writable_ = result == 0;
}

Writable::~Writable() {
  if (writable_ && !(access_ & PROT_WRITE))
    system_call(SYS_mprotect, begin_, length_, static_cast<std::uintptr_t>(access_));
}

}  // namespace bestride::preload
