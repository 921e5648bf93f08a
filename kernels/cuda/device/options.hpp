// SPDX-License-Identifier: Apache-2.0
#pragma once
// The choice of the GPU kernel for a piece: by shape, or forced (BESTRIDE_FORCE=gpu_kernel=).
#include <cstdint>
#include <string_view>

namespace bestride::cuda {

enum class GpuKernel : std::uint8_t {
  automatic,
  words,      ///< neighboring threads move neighboring packed words of 1 to 16 bytes
  transpose,  ///< through a tile in shared memory, so that both buffers are accessed in whole sectors
  bulk,       ///< long blocks by the bulk copy engine (capability 9.0 and later; words on others)
  bytes,      ///< words of one byte: the reference for the other kernels on the device
  ordered,    ///< one thread block moves block after block in the order of the type map: for unpacking layouts that
              ///< contain a byte twice
};
std::string_view name(GpuKernel kernel) noexcept;
/// "words" -> GpuKernel::words; returns false if the text is unknown.
bool parse(std::string_view text, GpuKernel* kernel) noexcept;

struct KernelOptions {
  /// Used for every shape it supports; other shapes use `automatic`. An unpack that needs `ordered` always gets it.
  GpuKernel kernel = GpuKernel::automatic;
  /// Maximum thread blocks per multiprocessor in a launch; 0: the default. Small values make tests execute the
  /// grid-stride loop.
  int blocks_per_multiprocessor = 0;
  // Thresholds of the automatic choice. They are options so that a measurement can sweep them (bench/gpu --sweep).
  /// Minimum iterations of both loops of a transpose: half a tile's edge, so that rows are long enough in both buffers.
  /// Derived, not tuned.
  int transpose_turns = 16;
  /// Blocks of at least this many bytes use the bulk copy engine, if they and their distances are multiples of 16. 0:
  /// only if forced or if BatchItem::bulk_from says so. Measured by `bestride calibrate`.
  std::int64_t bulk_from = 0;
  /// Maximum words per thread in flight, a power of two up to work.hpp's max_rounds; 0: max_rounds.
  int rounds = 0;
  /// Reads the choice gpu_kernel of BESTRIDE_FORCE.
  static KernelOptions from_settings();
};

/// Maximum number of blocks for which an unpack of an overlapping layout is done in order. MPI defines such receives as
/// erroneous.
inline constexpr std::int64_t ordered_block_limit = std::int64_t{1} << 22;

}  // namespace bestride::cuda
