// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plan: a layout's pieces with their block lists in one device's memory.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/pieces.hpp"
#include "kernels/cuda/pool.hpp"

namespace bestride::cuda {

/// Where a list stands in device memory.
struct UploadedList {
  Address offsets = 0;
  Address starts = 0;
  Address granules = 0;
  std::uint32_t entries = 0;
  bool wide = false;  ///< offsets are 64-bit
};

/// Immutable. Whoever has work in flight that uses it keeps it.
class Plan {
 public:
  /// Uploads the lists and waits for that. Error: out of memory, device dead, too irregular. See Device::plan.
  static Result<PlanPtr> make(Device& device, LayoutPtr layout) noexcept { return build(&device, std::move(layout)); }
  /// The same without a device: its lists are nowhere. For saying what would be done (sketch.hpp), never for doing it.
  static Result<PlanPtr> sketch(LayoutPtr layout) noexcept { return build(nullptr, std::move(layout)); }

  const LayoutPtr& layout() const noexcept { return layout_; }
  std::int64_t size() const noexcept { return layout_->size(); }
  const std::vector<Piece>& pieces() const noexcept { return pieces_.pieces; }
  const BlockList& list(int index) const noexcept { return pieces_.lists[static_cast<std::size_t>(index)]; }
  const UploadedList& uploaded(int index) const noexcept { return lists_[static_cast<std::size_t>(index)]; }
  /// Unpacking has to keep the order of the type map.
  bool overlaps() const noexcept { return pieces_.overlaps; }
  /// Every block in order: null unless the layout overlaps and is short enough.
  const UploadedList* ordered() const noexcept { return ordered_.entries != 0 ? &ordered_ : nullptr; }
  /// Bitwise or of all offsets, positions and lengths of a piece's list (ordered: of index -1): what limits the word.
  std::uint64_t list_bits(int index) const noexcept { return index < 0 ? ordered_bits_ : bits_[static_cast<std::size_t>(index)]; }

 private:
  Plan() = default;
  static Result<PlanPtr> build(Device* device, LayoutPtr layout) noexcept;
  LayoutPtr layout_;
  Pieces pieces_;
  std::vector<UploadedList> lists_;
  std::vector<std::uint64_t> bits_;
  UploadedList ordered_;
  std::uint64_t ordered_bits_ = 0;
  Buffer memory_;
};

}  // namespace bestride::cuda
