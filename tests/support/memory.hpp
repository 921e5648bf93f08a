// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory in which every byte is known, so that any byte written by mistake is detected: data, gaps, and a margin
// around both.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/type_map.hpp"

namespace bestride::test {

using Bytes = std::vector<std::byte>;

/// Pseudo-random bytes that depend only on the seed.
Bytes noise(std::size_t size, std::uint64_t seed);

/// The bytes at offsets [low, high) from an origin. `low` may be negative, as in an MPI buffer of a type with negative
/// displacements.
class Buffer {
 public:
  /// `seed`: determines the contents. `misaligned`: offset of the origin from a cache line, in bytes.
  Buffer(std::int64_t low, std::int64_t high, std::uint64_t seed, std::size_t misaligned = 0);
  /// A buffer for `count` elements of a type.
  static Buffer holding(const TypeExpression& type, std::int64_t count, std::uint64_t seed, std::size_t misaligned = 0);

  std::byte* origin() { return bytes_.data() + origin_; }
  const std::byte* origin() const { return bytes_.data() + origin_; }

  /// All bytes, including margins.
  Bytes& bytes() { return bytes_; }
  std::ptrdiff_t origin_offset() const { return static_cast<std::ptrdiff_t>(origin_); }

  /// The bytes of the runs in packing order.
  Bytes gather(const std::vector<ByteRun>& runs) const;
  /// Writes packed bytes to the runs, in order; stops where `packed` ends.
  void scatter(const std::vector<ByteRun>& runs, const Bytes& packed);

  /// nullopt if equal, otherwise the offset of the first difference from the origin and both values. Includes margins.
  std::optional<std::string> difference(const Buffer& expected) const;

 private:
  Bytes bytes_;
  std::size_t origin_ = 0;
};

/// Reserved address space whose pages are allocated when touched, for strides of several GiB.
class VastSpace {
 public:
  explicit VastSpace(std::size_t size);
  ~VastSpace();
  VastSpace(const VastSpace&) = delete;
  VastSpace& operator=(const VastSpace&) = delete;
  std::byte* data() { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  std::size_t size_;
};

/// Resident memory of this process in KiB.
std::int64_t resident_kib();

/// First difference of two byte strings as text, nullopt if equal.
std::optional<std::string> difference(const Bytes& expected, const Bytes& got);

}  // namespace bestride::test
