// SPDX-License-Identifier: Apache-2.0
#pragma once
// KernelTable: the copy kernels of one instruction set. The same sources (cpu/target/) are compiled once per
// instruction set, each into its own namespace, so that no inline function compiled for a wider instruction set can be
// linked into baseline code.
#include "kernels/cpu/piece.hpp"

namespace bestride::inline kernels {

/// A pair of kernels with the name that `Packer::text` shows; names start with the family. A missing kernel is null.
struct Kernels {
  const char* name = nullptr;
  Kernel pack = nullptr;
  Kernel unpack = nullptr;
};

/// Limit of |stride| for gathers: sixteen strides must fit the 31 bits of a gather's index.
inline constexpr std::int64_t gather_reach = std::int64_t{1} << 27;

struct KernelTable {
  Kernels block_copy;            ///< any width
  Kernels word[7];               ///< widths 1, 2, 4, ... 64
  Kernels overlap[6];            ///< [i]: widths in (2 << i, 4 << i), exclusive
  Kernels paced_word[2][5];      ///< 2 and 4 stores per block; widths 4, 8, 16, 32, 64; unpacking only
  Kernels paced_overlap[2][3];   ///< 2 and 4 stores per block; as overlap[2], [3], [4]; unpacking only
  Kernels wide;                  ///< widths over 64
  Kernels list_copy;             ///< any uniform width
  Kernels list_word[7];          ///< as word
  Kernels list_overlap[6];       ///< as overlap
  Kernels list_wide;             ///< widths over 64
  Kernels list_mixed;            ///< Piece::lengths
  Kernels gather[3];             ///< widths 4, 8, 16; |stride| below gather_reach; packing only
  Kernels permute[3];            ///< widths 4, 8, 16; stride = 2 blocks; AVX2: packing only
  Kernels record;                ///< Piece::mask
  Kernels fields;                ///< Piece::moves
  Kernels sorted_list;           ///< Piece::sorted
  Kernels fixed[3];              ///< widths 128, 192, 256
  Kernels transpose[6];          ///< widths 1, 2, 4, 8, 16, 32; row stride = width, |stride| >= rows * width
  Kernels transpose_overlap[5];  ///< other widths below 64, as overlap
  Kernels stream_word[4];        ///< widths 4, 8 (at stride = 2 blocks), 16, 32; packing only
  Kernels stream_wide;           ///< long blocks; packing only
  /// Copies with stores that bypass the caches; any alignment, any length. stream_fence orders these stores before
  /// later ones.
  void (*stream)(Byte* to, const Byte* from, std::int64_t size) = nullptr;
  void (*stream_fence)() = nullptr;
};

const KernelTable& scalar_kernels();
#if defined(__x86_64__)
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();
#endif

}  // namespace bestride::inline kernels
