// SPDX-License-Identifier: Apache-2.0
#pragma once
// Geometry: a layout as a rectangle or a box of bytes, for the copy engines.
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/cuda/device/device_layout.hpp"

namespace bestride::cuda {

/// Rows of `width` bytes, `pitch` bytes apart in the user's buffer; planes are `rows_per_plane` pitches apart. The
/// packed buffer has no gaps.
struct Box {
  std::int64_t offset = 0;  ///< of the first byte, from the buffer address
  std::int64_t width = 0;
  std::int64_t rows = 1;
  std::int64_t pitch = 0;
  std::int64_t planes = 1;
  std::int64_t rows_per_plane = 0;  ///< in the user's buffer, if planes > 1
  bool operator==(const Box&) const = default;
};

/// Empty if the layout is not a box or its pitch exceeds `max_pitch`. `overlaps`: the layout contains a byte twice.
std::optional<Box> box_of(std::span<const Piece> pieces, bool overlaps, std::int64_t max_pitch) noexcept;
inline std::optional<Box> box_of(const DeviceLayout& device_layout, std::int64_t max_pitch) noexcept {
  return box_of(device_layout.pieces(), device_layout.overlaps(), max_pitch);
}

/// Enqueues one asynchronous copy between the user's memory and a packed buffer that every context can access. The
/// context must be current.
Code copy_box(const Driver& driver, const Box& box, Address user, Address packed, bool to_packed,
              StreamHandle stream) noexcept;

}  // namespace bestride::cuda
