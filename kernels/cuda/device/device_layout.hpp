// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceLayout: a layout uploaded to one device: its pieces, with their block lists in the device's memory.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/device/device.hpp"
#include "kernels/cuda/device/pieces.hpp"
#include "kernels/cuda/device/pool.hpp"

namespace bestride::cuda {

/// Addresses of a block list in device memory.
struct UploadedList {
  Address offsets = 0;
  Address starts = 0;
  Address granules = 0;
  std::uint32_t entries = 0;
  bool wide = false;  ///< offsets are 64-bit
};

/// Immutable. Code that has work in flight with it must hold a reference.
class DeviceLayout {
 public:
  /// Uploads the lists and waits for the copies. Error: out of memory, device dead, or layout too irregular. See
  /// Device::device_layout.
  static Result<DeviceLayoutPtr> make(Device& device, LayoutPtr layout) noexcept {
    return build(&device, std::move(layout));
  }
  /// The same without a device: the lists have no addresses. For describing what would be done (sketch.hpp), never for
  /// executing it.
  static Result<DeviceLayoutPtr> sketch(LayoutPtr layout) noexcept { return build(nullptr, std::move(layout)); }

  const LayoutPtr& layout() const noexcept { return layout_; }
  std::int64_t size() const noexcept { return layout_->size(); }
  const std::vector<Piece>& pieces() const noexcept { return pieces_.pieces; }
  const BlockList& list(int index) const noexcept { return pieces_.lists[static_cast<std::size_t>(index)]; }
  const UploadedList& uploaded(int index) const noexcept { return lists_[static_cast<std::size_t>(index)]; }
  /// If true, an unpack must keep the order of the type map.
  bool overlaps() const noexcept { return pieces_.overlaps; }
  /// Every block in order. Null unless the layout overlaps and has few enough blocks.
  const UploadedList* ordered() const noexcept { return ordered_.entries != 0 ? &ordered_ : nullptr; }
  /// Bitwise or of all offsets, positions and lengths of a piece's list (index -1: the ordered list). It limits the
  /// word size.
  std::uint64_t list_bits(int index) const noexcept {
    return index < 0 ? ordered_bits_ : bits_[static_cast<std::size_t>(index)];
  }

 private:
  DeviceLayout() = default;
  static Result<DeviceLayoutPtr> build(Device* device, LayoutPtr layout) noexcept;
  LayoutPtr layout_;
  Pieces pieces_;
  std::vector<UploadedList> lists_;
  std::vector<std::uint64_t> bits_;
  UploadedList ordered_;
  std::uint64_t ordered_bits_ = 0;
  Buffer memory_;
};

}  // namespace bestride::cuda
