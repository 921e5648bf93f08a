// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packer: a Layout compiled into a short program of specialised copy kernels, for host memory.
//
// Works at any alignment; reads no byte outside [low, high) of the layout; writes, when unpacking, exactly the layout's bytes:
// a gap byte is never written, not even with its own old value, because another thread may own it.
// Thread-safe after construction. No allocation, no lock, no system call while packing.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datatype/layout.hpp"
#include "kernels/isa.hpp"

namespace bestride {

/// Kernel families. `automatic` lets the planner choose for the shape; a named one is used wherever it can do the shape, and
/// `automatic` elsewhere (BESTRIDE_KERNEL, tests and benches).
enum class KernelFamily : std::uint8_t {
  automatic,
  reference,   ///< byte-exact loops over the node tree
  block_copy,  ///< memcpy per block
  word,        ///< blocks of 1, 2, 4, 8, 16, 32, 64 bytes: one move per block (paced: its store repeated)
  overlap,     ///< blocks of 3..127 bytes: two overlapping moves
  wide,        ///< blocks over 64 bytes: full vectors, the last one overlapping its neighbour
  gather,      ///< 4- and 8-byte blocks: vector gather or permute, full-width stores
  record,      ///< records: under a byte mask (compress, expand; up to one cache line), or field by field
  list,        ///< block lists, uniform or mixed lengths
  transpose,   ///< inner stride large, outer stride = block: walked by cache line, order kept
  streaming,   ///< non-temporal stores into the packed buffer, when it leaves the cache
};
std::string_view name(KernelFamily family) noexcept;
/// "word" -> KernelFamily::word; unknown: false.
bool parse(std::string_view text, KernelFamily* family) noexcept;

struct PackerOptions {
  Isa isa = widest_isa();
  KernelFamily family = KernelFamily::automatic;
  /// Packed size in bytes from which stores bypass the cache; 0: never; -1: the default measured for this CPU class.
  std::int64_t streaming_from = -1;
  /// Options from BESTRIDE_KERNEL_ISA, BESTRIDE_KERNEL, BESTRIDE_STREAMING_FROM.
  static PackerOptions from_settings();
};

class Packer {
 public:
  /// Compiles a layout. The layout is kept alive by the packer. May throw std::bad_alloc, nothing else.
  explicit Packer(LayoutPtr layout, const PackerOptions& options = PackerOptions::from_settings());
  ~Packer();
  Packer(Packer&&) noexcept;
  Packer& operator=(Packer&&) noexcept;

  /// Writes size() bytes to `packed`, from the layout's bytes relative to `user` (the address given to MPI; with absolute
  /// types that is MPI_BOTTOM, a null pointer). Source and destination must not overlap.
  void pack(void* packed, const void* user) const noexcept;
  /// Reads size() bytes from `packed`. Where the layout names a byte twice, the later one stands, as in MPI.
  void unpack(void* user, const void* packed) const noexcept;

  /// The packed bytes [first, last) only: pack writes last - first bytes to `packed`; unpack reads them from `packed`.
  /// Any byte position, also inside a block. 0 <= first <= last <= size(). Used for short messages and for chunks.
  void pack_range(void* packed, const void* user, std::int64_t first, std::int64_t last) const noexcept;
  void unpack_range(void* user, const void* packed, std::int64_t first, std::int64_t last) const noexcept;

  std::int64_t size() const noexcept { return layout_->size(); }
  const LayoutPtr& layout() const noexcept { return layout_; }
  /// The kernels of the program, e.g. "record.fields 256 of 37 B/avx512": for `bestride explain` and the report.
  std::string text() const;

 private:
  struct Program;
  LayoutPtr layout_;
  std::unique_ptr<Program> program_;
};

}  // namespace bestride
