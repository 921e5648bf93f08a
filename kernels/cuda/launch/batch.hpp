// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batch: any number of packs and unpacks of one context in one kernel launch.
//
// A halo has 26 faces, and a launch costs more than moving most of them, so one launch takes the whole set. The
// description of the work is passed as kernel parameters (up to 4 KiB, enough for the 26 faces of a halo), otherwise as
// one block of device memory, written once. A batch is immutable and may be launched repeatedly (persistent requests).
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/device/device.hpp"
#include "kernels/cuda/device/options.hpp"
#include "kernels/direction.hpp"

namespace bestride::cuda {

/// One pack or unpack. Both buffers must be accessible from the device (device, managed or pinned memory, any
/// alignment) and must not overlap each other. [first, last) are the packed bytes to move; either end may be inside a
/// block. `packed` is the address of byte `first`.
struct BatchItem {
  DeviceLayoutPtr device_layout;
  Address user = 0;
  Address packed = 0;
  Direction direction = Direction::pack;
  std::int64_t first = 0;
  std::int64_t last = -1;  ///< -1: the size of the layout
  /// Minimum length of blocks for the bulk copy engine, as KernelOptions::bulk_from, if the options leave the choice
  /// open. Larger than 0 only if `packed` is device memory, because it is measured with device memory.
  std::int64_t bulk_from = 0;
  bool operator==(const BatchItem&) const = default;
};

/// Immutable after make(); several threads may call launch() at the same time.
class Batch {
 public:
  /// Prepares the launch. Does no GPU work except the upload of a description beyond 4 KiB. Error: out of memory, the
  /// device is dead, no kernels, or an unpack of an overlapping layout of more than ordered_block_limit blocks.
  static Result<Batch> make(DevicePtr device, std::span<const BatchItem> items,
                            const KernelOptions& options = KernelOptions::from_settings());

  /// Enqueues all items, in no order among them; does not wait. The memory of the items and the batch must stay valid
  /// until the work is done.
  Result<Done> launch(StreamHandle stream) const noexcept;

  std::int64_t bytes() const noexcept { return bytes_; }  ///< packed bytes moved by one launch
  int pieces() const noexcept { return pieces_; }
  unsigned grid() const noexcept { return grid_; }  ///< thread blocks
  bool uploaded() const noexcept { return static_cast<bool>(description_); }
  /// One line: "3 pieces, 1.5 MiB: words 16 x2, transpose 4; grid 396".
  std::string text() const;

  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;

 private:
  Batch() = default;
  DevicePtr device_;
  std::vector<DeviceLayoutPtr> device_layouts_;  ///< keeps the lists in device memory alive
  std::vector<std::uint64_t> parameters_;        ///< Work as the kernel reads it (work.hpp)
  Buffer description_;                           ///< the same in device memory, if it is too long for the parameters
  Address far_ = 0;                              ///< address of the description in device memory, or 0
  FunctionHandle kernel_ = nullptr;
  unsigned grid_ = 0;
  int pieces_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace bestride::cuda
