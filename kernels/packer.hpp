// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packer: a Layout compiled into a short program of specialized copy kernels, for host memory.
//
// Works at any alignment. Reads no byte outside [low, high) of the layout. Unpacking writes exactly the layout's bytes:
// a gap byte is never written, not even with its own value, because another thread may own it. Thread-safe after
// construction. Packing does no allocation, takes no lock and makes no system call.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datatype/layout.hpp"
#include "kernels/isa.hpp"

namespace bestride::inline kernels {

/// Kernel families. `automatic` chooses by shape. A named family is used for every shape that it supports, and
/// `automatic` for the others (BESTRIDE_FORCE=kernel=, tests and benchmarks).
enum class KernelFamily : std::uint8_t {
  automatic,
  reference,   ///< byte-exact loops over the node tree
  block_copy,  ///< memcpy per block
  word,        ///< blocks of 1, 2, 4, 8, 16, 32, 64 bytes: one move per block (paced: with repeated stores)
  overlap,     ///< blocks of 3..127 bytes: two overlapping moves
  wide,        ///< blocks over 64 bytes: full vectors; the last one overlaps the one before it
  gather,      ///< 4- and 8-byte blocks: vector gather or permute, full-width stores
  record,      ///< records: under a byte mask (compress, expand; up to one cache line), or field by field
  list,        ///< block lists, uniform or mixed lengths
  transpose,   ///< large inner stride, outer stride = block: processed by cache line, in the same packed order
  streaming,   ///< non-temporal stores into the packed buffer if it does not fit the cache
};
std::string_view name(KernelFamily family) noexcept;
/// "word" -> KernelFamily::word; returns false if the text is unknown.
bool parse(std::string_view text, KernelFamily* family) noexcept;

struct PackerOptions {
  Isa isa = widest_isa();
  KernelFamily family = KernelFamily::automatic;
  /// Packed size in bytes from which stores bypass the cache; 0: never; -1: the default measured for this class of CPU.
  std::int64_t streaming_from = -1;
  /// Options from the choices isa, kernel and streaming_from of BESTRIDE_FORCE.
  static PackerOptions from_settings();
};

class Packer {
 public:
  /// Compiles a layout. The packer keeps the layout alive. May throw std::bad_alloc, nothing else.
  explicit Packer(LayoutPtr layout, const PackerOptions& options = PackerOptions::from_settings());
  ~Packer();
  Packer(Packer&&) noexcept;
  Packer& operator=(Packer&&) noexcept;

  /// Writes size() bytes to `packed`, read from the layout's bytes relative to `user` (the address given to MPI; for
  /// absolute types this is MPI_BOTTOM, a null pointer). Source and destination must not overlap.
  void pack(void* packed, const void* user) const noexcept;
  /// Reads size() bytes from `packed`. If the layout contains a byte twice, the later value is written, as in MPI.
  void unpack(void* user, const void* packed) const noexcept;

  /// Pack and unpack the packed bytes [first, last) only: pack_range writes last - first bytes to `packed`,
  /// unpack_range reads them from `packed`. Any byte position, also inside a block. 0 <= first <= last <= size(). Used
  /// for short messages and for chunks.
  void pack_range(void* packed, const void* user, std::int64_t first, std::int64_t last) const noexcept;
  void unpack_range(void* user, const void* packed, std::int64_t first, std::int64_t last) const noexcept;

  std::int64_t size() const noexcept { return layout_->size(); }
  const LayoutPtr& layout() const noexcept { return layout_; }
  /// The kernels of the program, e.g. "record.fields 256 of 37 B/avx512", for `bestride explain` and the report.
  std::string text() const;

 private:
  struct Program;
  LayoutPtr layout_;
  std::unique_ptr<Program> program_;
};

}  // namespace bestride::inline kernels
