// SPDX-License-Identifier: Apache-2.0
#pragma once
// Three shapes whose numbers are compile-time constants, as in a kernel written for one datatype: the reference for the
// general kernels. One thread moves one word, and adjacent threads move adjacent words of the packed side. Compiled for
// the device (by_hand.cu) and for the host (by_hand_host.cpp, for the stand-in driver of the tests).
#include <cstdint>

#ifdef __CUDACC__
#define BY_HAND_ON_DEVICE __device__ __forceinline__
#else
#define BY_HAND_ON_DEVICE inline
#endif

namespace by_hand {

struct alignas(16) Wide {
  std::uint64_t low, high;
};

/// The parameter of every kernel here, with device addresses.
struct Move {
  std::uint64_t user;
  std::uint64_t packed;
  std::uint64_t words;  ///< number of words to move
};

/// Rows of 64 bytes, 512 apart.
struct Vector {
  using Word = Wide;
  static constexpr std::uint64_t block = 64, pitch = 512, packed_bytes = 64, user_bytes = pitch;
  BY_HAND_ON_DEVICE static std::uint64_t offset(std::uint64_t word) { return (word >> 2) * pitch + (word & 3) * 16; }
};

/// The face of three cells along x of a cube of doubles with edges of 512 cells.
struct Face {
  using Word = std::uint64_t;
  static constexpr std::uint64_t edge = 512, width = 3, packed_bytes = width * 8, user_bytes = edge * 8;
  BY_HAND_ON_DEVICE static std::uint64_t offset(std::uint64_t word) {
    const std::uint32_t row = static_cast<std::uint32_t>(word) / 3, within = static_cast<std::uint32_t>(word) % 3;
    return std::uint64_t{row} * edge * 8 + within * 8;
  }
};

/// struct { int; double; float[3]; } with its padding: bytes 0 to 3 and 8 to 27 of every 32.
struct Structs {
  using Word = std::uint32_t;
  static constexpr std::uint64_t extent = 32, packed_bytes = 24, user_bytes = extent;
  BY_HAND_ON_DEVICE static std::uint64_t offset(std::uint64_t word) {
    const std::uint32_t each = static_cast<std::uint32_t>(word) / 6, within = static_cast<std::uint32_t>(word) % 6;
    return std::uint64_t{each} * extent + (within == 0 ? 0 : within * 4 + 4);
  }
};

/// The kernels are by_hand_<shape>_<pack|unpack>, and one that does nothing.
inline constexpr const char* empty_kernel = "by_hand_empty";

/// The image for cuModuleLoadData: a fatbin, or a line of text in a build without nvcc.
const void* image() noexcept;

}  // namespace by_hand
