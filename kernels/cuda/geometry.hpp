// SPDX-License-Identifier: Apache-2.0
#pragma once
// Geometry: a layout as a rectangle or a box of bytes, for the copy engines.
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cuda/plan.hpp"

namespace bestride::cuda {

/// Rows of `width` bytes, `pitch` bytes apart on the user's side; planes `rows_per_plane` pitches apart. Packed: all close together.
struct Box {
  std::int64_t offset = 0;  ///< of the first byte, from the buffer address
  std::int64_t width = 0;
  std::int64_t rows = 1;
  std::int64_t pitch = 0;
  std::int64_t planes = 1;
  std::int64_t rows_per_plane = 0;  ///< of the user's side, for planes > 1
  bool operator==(const Box&) const = default;
};

/// Nothing if the layout is no box, or its pitch exceeds `max_pitch`. `overlaps`: it names a byte twice.
std::optional<Box> box_of(std::span<const Piece> pieces, bool overlaps, std::int64_t max_pitch) noexcept;
inline std::optional<Box> box_of(const Plan& plan, std::int64_t max_pitch) noexcept { return box_of(plan.pieces(), plan.overlaps(), max_pitch); }

/// One asynchronous copy between the user's memory and a packed buffer, which every context reaches. The context must be current.
Code copy_box(const Driver& driver, const Box& box, Address user, Address packed, bool to_packed, StreamHandle stream) noexcept;

}  // namespace bestride::cuda
