// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes that MPI reads and writes through the buffer arguments of collectives. Arguments that are not sound make an empty region: such
// a call goes to MPI, which names the error before it touches a buffer.
#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "datatype/build.hpp"
#include "interpose/back/gpu/members.hpp"
#include "interpose/back/gpu/mirror.hpp"
#include "interpose/back/spelled_blocks.hpp"

namespace bestride {

enum class Use : std::uint8_t { read, written, both };

/// Bytes of one buffer, one run of elements after the other.
class Runs {
 public:
  /// `one_storage`: all runs lie in what one allocation gave, as MPI demands of blocks of one type: if the first byte is the host's, all are,
  /// and nothing more is looked at.
  explicit Runs(const void* user, bool one_storage = true) noexcept : looks_(one_storage && user && user != MPI_IN_PLACE) { region_.user = user; }
  /// `count` elements, `displacement` bytes from the buffer's begin. Negative counts and MPI_DATATYPE_NULL: nothing of the region stands.
  void add(std::int64_t count, std::int64_t displacement, MPI_Datatype type, Use use);
  /// The same, the displacement in extents of the type.
  void add_element(std::int64_t count, std::int64_t displacement, MPI_Datatype type, Use use);
  Region region();

 private:
  Region region_;
  std::vector<Placed> reads_, writes_;
  bool sound_ = true;
  bool looks_;         ///< at the first byte, which is to come
  bool host_ = false;  ///< it was the host's
};

/// `count` elements at the buffer's begin.
Region region_of(const void* buffer, std::int64_t count, MPI_Datatype type, Use use) noexcept;

// The blocks of a direction with one type, for `n` ranks; `only` >= 0: the block of that rank is read, too (MPI_IN_PLACE).
template <class Buffer, class Count>
Region region_of(const OneBlock<Buffer, Count>& given, int, Use use, int = -1) noexcept {
  return region_of(given.buffer, given.count, given.type, use);
}
template <class Buffer, class Count>
Region region_of(const EqualBlocks<Buffer, Count>& given, int n, Use use, int only = -1) noexcept {
  try {
    Runs runs(given.buffer);
    std::int64_t all = 0;
    if (given.count < 0 || __builtin_mul_overflow(std::int64_t{given.count}, n, &all)) return {given.buffer};
    runs.add(all, 0, given.type, use);
    if (only >= 0) runs.add_element(given.count, std::int64_t{given.count} * only, given.type, Use::read);
    return runs.region();
  } catch (...) {
    return {.user = given.buffer, .unknown = true};
  }
}
template <class Buffer, class Count, class Displacement>
Region region_of(const VaryingBlocks<Buffer, Count, Displacement>& given, int n, Use use, int only = -1) noexcept {
  try {
    Runs runs(given.buffer);
    if (!given.counts || !given.at) return {given.buffer};
    for (int i = 0; i < n; ++i) {
      runs.add_element(given.counts[i], given.at[i], given.type, use);
      if (i == only) runs.add_element(given.counts[i], given.at[i], given.type, Use::read);
    }
    return runs.region();
  } catch (...) {
    return {.user = given.buffer, .unknown = true};
  }
}
/// A type a block, displacements in bytes.
template <class Count, class Displacement>
Region region_of(const void* buffer, const Count* counts, const Displacement* at, const MPI_Datatype* types, int n, Use use) noexcept {
  try {
    Runs runs(buffer, false);
    if (!counts || !at || !types) return {buffer};
    for (int i = 0; i < n; ++i) runs.add(counts[i], at[i], types[i], use);
    return runs.region();
  } catch (...) {
    return {.user = buffer, .unknown = true};
  }
}

}  // namespace bestride
