// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPU kernel a piece gets: chosen by its shape, or forced (BESTRIDE_GPU_KERNEL, tests, measurements).
#include <cstdint>
#include <string_view>

namespace bestride::cuda {

enum class GpuKernel : std::uint8_t {
  automatic,
  words,      ///< neighbouring threads move neighbouring packed words, of 1 to 16 bytes
  transpose,  ///< through a tile in shared memory, so that both sides move whole sectors
  bulk,       ///< long blocks by the bulk copy engine (capability 9.0 and later; words elsewhere)
  bytes,      ///< words of one byte: the oracle of the others on the device
  ordered,    ///< block by block in the order of the type map by one thread block: for unpacking layouts that name a byte twice
};
std::string_view name(GpuKernel kernel) noexcept;
/// "words" -> GpuKernel::words; unknown: false.
bool parse(std::string_view text, GpuKernel* kernel) noexcept;

struct KernelOptions {
  /// Used wherever it can do the shape; `automatic` elsewhere. An unpack that needs `ordered` always gets it.
  GpuKernel kernel = GpuKernel::automatic;
  /// At most this many thread blocks a multiprocessor in a launch; 0: the default. Small values make tests walk the grid-stride loop.
  int blocks_per_multiprocessor = 0;
  // Thresholds of the automatic choice. They are here so that a measurement can sweep them (bench/gpu --sweep); their defaults are in force.
  /// Turns that both loops of a transpose need: half a tile's edge, so that rows are long enough on both sides. Derived, not tuned.
  int transpose_turns = 16;
  /// Blocks of at least so many bytes, all of them and their distances multiples of 16, go by the bulk copy engine; 0: only when forced, and
  /// where a BatchItem says so. Measured by `bestride calibrate`.
  std::int64_t bulk_from = 0;
  /// At most this many words a thread in flight, a power of two up to work.hpp's most_rounds; 0: that.
  int rounds = 0;
  /// BESTRIDE_GPU_KERNEL.
  static KernelOptions from_settings();
};

/// Longest list of blocks an unpack of an overlapping layout is run in order for; MPI calls such receives erroneous.
inline constexpr std::int64_t ordered_block_limit = std::int64_t{1} << 22;

}  // namespace bestride::cuda
