// SPDX-License-Identifier: Apache-2.0
#pragma once
// Program: the code that a Packer executes: the node tree of a layout in which every regular part is replaced by one
// kernel call.
//
// The innermost one or two loops, records and block lists become pieces. The loops and sequences above them remain and
// are walked recursively. Alternative considered: a flat list of (kernel, arguments) for every iteration, whose length
// grows with the counts, not with the type.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datatype/layout.hpp"
#include "kernels/cpu/kernel_table.hpp"
#include "kernels/direction.hpp"
#include "kernels/packer.hpp"

namespace bestride::inline kernels {

/// A chosen kernel and its name.
struct Step {
  const char* name = nullptr;
  Kernel kernel = nullptr;
};
struct Steps {
  Step pack, unpack;
  Step& operator[](Direction direction) noexcept { return direction == Direction::pack ? pack : unpack; }
  const Step& operator[](Direction direction) const noexcept { return direction == Direction::pack ? pack : unpack; }
};

struct Op {
  enum class Kind : std::uint8_t { piece, loop, sequence };
  struct Part {
    std::int64_t offset = 0;  ///< of its first packed byte, bytes from the first packed byte of the sequence
    std::int64_t start = 0;   ///< its position in the packed order
    std::unique_ptr<Op> op;
  };

  Kind kind = Kind::piece;
  std::int64_t size = 0;  ///< packed bytes

  // piece: kernels for whole rows and for a part of one row
  Piece piece;
  Steps whole;
  Steps row;
  const std::int64_t* starts = nullptr;  ///< mixed list: packed position of each unit in its row

  // loop
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::unique_ptr<Op> body;

  std::vector<Part> parts;  // sequence

  // Arrays that pieces point to, if the layout's own arrays cannot be used.
  std::vector<std::int64_t> own_offsets;
  std::vector<std::int32_t> own_offsets32;
  std::vector<std::int64_t> own_lengths;
  std::vector<std::int64_t> own_starts;
  std::vector<FieldMove> own_moves;
  std::vector<PlacedMove> own_sorted;
  bool any_order = false;  ///< true if the blocks of a sorted list do not overlap
};

/// Builds the op tree of a layout; the layout must outlive it. An empty layout gives a piece without rows.
std::unique_ptr<Op> compile(const Layout& layout, const PackerOptions& options);

/// Moves a whole op. `packed`: its first packed byte; `user`: the address of this byte in the user's memory.
template <Direction direction>
void run(const Op& op, Byte* packed, Byte* user) noexcept;

/// Moves the packed bytes [first, last) of an op. `packed`: address of byte `first`; `user`: user address of byte 0.
template <Direction direction>
void run_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept;

/// The reference: one memcpy per block of the node tree, limited to [first, last).
template <Direction direction>
void run_reference(const Node& node, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept;

/// Packs [first, last) into a small buffer and writes whole cache lines from there with non-temporal stores.
void run_streaming(const Op& op, const KernelTable& table, Byte* packed, Byte* user, std::int64_t first,
                   std::int64_t last) noexcept;

/// True if a program compiled for the streaming family contains a streaming kernel.
bool has_streaming_kernels(const Op& op);

const KernelTable& kernels_for(Isa isa) noexcept;

std::string text(const Op& op);

}  // namespace bestride::inline kernels
