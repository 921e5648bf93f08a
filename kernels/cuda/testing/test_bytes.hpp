// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes for comparisons: random content, and the output of the reference packer for a layout.
#include <cstdint>
#include <vector>

#include "kernels/packer.hpp"

namespace bestride::cuda::test {

using Bytes = std::vector<unsigned char>;

inline Bytes noise(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    bytes[i] = static_cast<unsigned char>(x >> 56 ^ x >> 23);
  }
  return bytes;
}

/// The buffer address for which the lowest byte of the layout is at `memory`.
inline std::uint64_t base_for(const Layout& layout, std::uint64_t memory) {
  return memory - static_cast<std::uint64_t>(layout.low());
}
inline std::size_t span_of(const Layout& layout) { return static_cast<std::size_t>(layout.high() - layout.low()); }

inline Bytes packed_by_reference(const LayoutPtr& layout, const Bytes& user, std::int64_t first, std::int64_t last) {
  Bytes packed(static_cast<std::size_t>(last - first));
  const Packer oracle(layout, {Isa::scalar, KernelFamily::reference, 0});
  oracle.pack_range(packed.data(),
                    reinterpret_cast<const void*>(base_for(*layout, reinterpret_cast<std::uint64_t>(user.data()))),
                    first, last);
  return packed;
}

/// The content of `user` after the packed bytes [first, last) were unpacked.
inline Bytes unpacked_by_reference(const LayoutPtr& layout, Bytes user, const Bytes& packed, std::int64_t first,
                                   std::int64_t last) {
  const Packer oracle(layout, {Isa::scalar, KernelFamily::reference, 0});
  oracle.unpack_range(reinterpret_cast<void*>(base_for(*layout, reinterpret_cast<std::uint64_t>(user.data()))),
                      packed.data(), first, last);
  return user;
}

}  // namespace bestride::cuda::test
