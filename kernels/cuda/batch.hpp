// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batch: any number of packs and unpacks of one context in one kernel launch.
//
// A halo has 26 faces and a launch costs more than most of them; so the unit of work is the set. What the kernel has to know
// goes with the launch as its parameters (up to 4 KiB, a halo's 26 faces), else as one block of device memory, written once. A batch
// is immutable and may be launched again and again (persistent requests).
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/options.hpp"

namespace bestride::cuda {

enum class Direction : std::uint8_t { pack, unpack };

/// One pack or unpack. Both sides must be reachable from the device: device, managed or pinned memory, any alignment; they must not
/// overlap each other. [first, last): the packed bytes to move, anywhere in a block; `packed` is where byte `first` stands.
struct BatchItem {
  PlanPtr plan;
  Address user = 0;
  Address packed = 0;
  Direction direction = Direction::pack;
  std::int64_t first = 0;
  std::int64_t last = -1;  ///< -1: the layout's size
  /// Where the options choose freely: long blocks by the bulk copy engine, as KernelOptions::bulk_from. Larger than 0 only if `packed` is
  /// device memory, which is what it is measured with.
  std::int64_t bulk_from = 0;
  bool operator==(const BatchItem&) const = default;
};

/// Immutable after make(); launch() may be called from several threads.
class Batch {
 public:
  /// Prepares the launch; does no GPU work but for the upload of a description beyond 4 KiB. Error: out of memory, the device is
  /// dead, no kernels, or an unpack of an overlapping layout of more than ordered_block_limit blocks.
  static Result<Batch> make(DevicePtr device, std::span<const BatchItem> items, const KernelOptions& options = KernelOptions::from_settings());

  /// Enqueues all of it, in no order among the items; does not wait. The items' memory and the batch must stay until it is done.
  Result<Done> launch(StreamHandle stream) const noexcept;

  std::int64_t bytes() const noexcept { return bytes_; }   ///< packed bytes moved by one launch
  int pieces() const noexcept { return pieces_; }
  unsigned grid() const noexcept { return grid_; }         ///< thread blocks
  bool uploaded() const noexcept { return static_cast<bool>(description_); }
  /// One line: "3 pieces, 1.5 MiB: words 16 x2, transpose 4; grid 396".
  std::string text() const;

  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;

 private:
  Batch() = default;
  DevicePtr device_;
  std::vector<PlanPtr> plans_;              ///< keeps the lists in device memory
  std::vector<std::uint64_t> parameters_;   ///< Work as the kernel reads it (work.hpp)
  Buffer description_;                      ///< the same in device memory, when it is too long for parameters
  Address far_ = 0;                         ///< where, or 0
  FunctionHandle kernel_ = nullptr;
  unsigned grid_ = 0;
  int pieces_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace bestride::cuda
