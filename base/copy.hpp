// SPDX-License-Identifier: Apache-2.0
#pragma once
// copy_bytes: memcpy without its worst case.
//
// glibc copies from 4 KiB up to about the size of the L2 cache with `rep movsb` where the processor advertises it. On
// AMD Zen that runs at 3 GB/s instead of 50 if the destination is 1 to 63 bytes after the source modulo 4096 (measured
// on an EPYC with glibc 2.36, bench/figures_one_node.md). Buffers of 128 KiB and more from malloc begin 16 bytes after
// a page, so copies to them from memory that begins on a page are of this kind.
//
// This header is included by sources compiled for wider instruction sets than the baseline: nothing here is inlined but
// a comparison and memcpy.
#include <cstddef>

namespace bestride {

/// As memcpy. Any size.
void copy_long(void* to, const void* from, std::size_t bytes) noexcept;
[[gnu::always_inline]] inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes < 4096)
    __builtin_memcpy(to, from, bytes);
  else
    copy_long(to, from, bytes);
}

}  // namespace bestride
