// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/geometry.hpp"

namespace bestride::cuda {
namespace {

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

/// Unified: the driver determines the kind of memory from the address.
template <class Copy>
void set_sides(Copy& copy, Address user, std::size_t user_pitch, Address packed, std::size_t packed_pitch,
               bool to_packed) {
  copy.source_type = copy.target_type = memory_type::unified;
  copy.source_device = to_packed ? user : packed;
  copy.source_pitch = to_packed ? user_pitch : packed_pitch;
  copy.target_device = to_packed ? packed : user;
  copy.target_pitch = to_packed ? packed_pitch : user_pitch;
}

}  // namespace

std::optional<Box> box_of(std::span<const Piece> pieces, bool overlaps, std::int64_t max_pitch) noexcept {
  if (pieces.size() != 1 || overlaps) return {};
  const Piece& piece = pieces[0];
  if (piece.list >= 0 || piece.loops.size() > 2) return {};
  Box box{piece.user, piece.block, 1, piece.block, 1, 0};
  if (!piece.loops.empty()) {
    const PieceLoop& rows = piece.loops[0];
    if (rows.user_stride < piece.block || rows.user_stride > max_pitch || rows.packed_stride != piece.block) return {};
    box.rows = rows.count;
    box.pitch = rows.user_stride;
  }
  if (piece.loops.size() == 2) {
    const PieceLoop& planes = piece.loops[1];
    if (planes.user_stride % box.pitch != 0 || planes.user_stride < box.pitch * box.rows ||
        planes.packed_stride != box.width * box.rows)
      return {};
    box.planes = planes.count;
    box.rows_per_plane = planes.user_stride / box.pitch;
  }
  return box;
}

Code copy_box(const Driver& driver, const Box& box, Address user, Address packed, bool to_packed,
              StreamHandle stream) noexcept {
  const Address first = user + static_cast<Address>(box.offset);
  if (box.planes == 1) {
    Copy2D copy{};
    set_sides(copy, first, size(box.pitch), packed, size(box.width), to_packed);
    copy.width = size(box.width);
    copy.height = size(box.rows);
    return driver.cuMemcpy2DAsync(&copy, stream);
  }
  Copy3D copy{};
  set_sides(copy, first, size(box.pitch), packed, size(box.width), to_packed);
  copy.source_height = size(to_packed ? box.rows_per_plane : box.rows);
  copy.target_height = size(to_packed ? box.rows : box.rows_per_plane);
  copy.width = size(box.width);
  copy.height = size(box.rows);
  copy.depth = size(box.planes);
  return driver.cuMemcpy3DAsync(&copy, stream);
}

}  // namespace bestride::cuda
