// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes that MPI reads and writes through the buffer arguments of collectives. Invalid arguments make an empty
// region: such a call is forwarded, and MPI reports the error before it touches a buffer.
#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "datatype/build.hpp"
#include "interpose/device/collective_members.hpp"
#include "interpose/device/host_shadow.hpp"
#include "interpose/message/respelled_blocks.hpp"

namespace bestride::inline interpose {

enum class BufferUse : std::uint8_t { read, written, both };

/// Builds the region of one buffer from runs of elements, added one after the other.
class BufferRegionBuilder {
 public:
  /// `one_storage`: all runs are in one allocation, as MPI requires for blocks of one type. Then, if the first byte is
  /// in host memory, all are, and no further run is examined.
  explicit BufferRegionBuilder(const void* user, bool one_storage = true) noexcept
      : checks_first_byte_(one_storage && user && user != MPI_IN_PLACE) {
    region_.user = user;
  }
  /// Adds `count` elements, `displacement` bytes from the start of the buffer. A negative count or MPI_DATATYPE_NULL
  /// makes the whole region invalid.
  void add(std::int64_t count, std::int64_t displacement, MPI_Datatype type, BufferUse use);
  /// Adds `count` elements, `displacement` extents of the type from the start of the buffer.
  void add_element(std::int64_t count, std::int64_t displacement, MPI_Datatype type, BufferUse use);
  BufferRegion region();

 private:
  BufferRegion region_;
  std::vector<Placed> reads_, writes_;
  bool sound_ = true;
  bool checks_first_byte_;  ///< the first byte still has to be located
  bool host_ = false;       ///< the first byte is in host memory
};

/// `count` elements at the start of the buffer.
BufferRegion region_of(const void* buffer, std::int64_t count, MPI_Datatype type, BufferUse use) noexcept;

// The blocks of a direction with one type, for `n` ranks. `only` >= 0: the block of that rank is read, too
// (MPI_IN_PLACE).
template <class Buffer, class Count>
BufferRegion region_of(const OneBlock<Buffer, Count>& given, int, BufferUse use, int = -1) noexcept {
  return region_of(given.buffer, given.count, given.type, use);
}
template <class Buffer, class Count>
BufferRegion region_of(const EqualBlocks<Buffer, Count>& given, int n, BufferUse use, int only = -1) noexcept {
  try {
    BufferRegionBuilder runs(given.buffer);
    std::int64_t all = 0;
    if (given.count < 0 || __builtin_mul_overflow(std::int64_t{given.count}, n, &all)) return {given.buffer};
    runs.add(all, 0, given.type, use);
    if (only >= 0) runs.add_element(given.count, std::int64_t{given.count} * only, given.type, BufferUse::read);
    return runs.region();
  } catch (...) {
    return {.user = given.buffer, .unknown = true};
  }
}
template <class Buffer, class Count, class Displacement>
BufferRegion region_of(const VaryingBlocks<Buffer, Count, Displacement>& given, int n, BufferUse use,
                       int only = -1) noexcept {
  try {
    BufferRegionBuilder runs(given.buffer);
    if (!given.counts || !given.at) return {given.buffer};
    for (int i = 0; i < n; ++i) {
      runs.add_element(given.counts[i], given.at[i], given.type, use);
      if (i == only) runs.add_element(given.counts[i], given.at[i], given.type, BufferUse::read);
    }
    return runs.region();
  } catch (...) {
    return {.user = given.buffer, .unknown = true};
  }
}
/// Blocks with one type each; displacements in bytes.
template <class Count, class Displacement>
BufferRegion region_of(const void* buffer, const Count* counts, const Displacement* at, const MPI_Datatype* types,
                       int n, BufferUse use) noexcept {
  try {
    BufferRegionBuilder runs(buffer, false);
    if (!counts || !at || !types) return {buffer};
    for (int i = 0; i < n; ++i) runs.add(counts[i], at[i], types[i], use);
    return runs.region();
  } catch (...) {
    return {.user = buffer, .unknown = true};
  }
}

}  // namespace bestride::inline interpose
