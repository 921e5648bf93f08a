// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is chosen for a layout in memory that a GPU moves: not whether to leave it to MPI, which may not be able to take such memory,
// but the way its bytes take to a contiguous buffer MPI can. Chooser::choose_device makes it.
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/cuda/way.hpp"

namespace bestride {

/// What may be chosen here.
struct DeviceAllowed {
  /// The contiguous buffer may be device memory: the MPI is GPU-aware, or (MPI_Pack, MPI_Unpack) the caller's pack buffer is on the device.
  bool aware = false;
  /// The layout is a box (cuda::can_move says so).
  bool copy_engine = false;
  /// The GPU kernels are in this build and the driver runs them.
  bool kernels = true;
  /// The profile's GPU curves are of another GPU (why_stale() said so): the built-in ones are used.
  bool other_gpu = false;
  /// Taken wherever it is possible: what BESTRIDE_STRATEGY names, if it names a way for device memory (forced_device_way()).
  std::optional<cuda::TransferWay> forced{};
};

struct DeviceChoice {
  cuda::TransferWay way = cuda::TransferWay::staged;
  std::int64_t chunk = 0;  ///< bytes, for `pipelined`
  /// Predicted seconds per way, in the order of cuda::TransferWay; infinity where not allowed. One side of the call, transfer included.
  std::array<double, cuda::transfer_way_count> seconds{};
  /// False: no way is allowed; `way` means nothing.
  bool possible() const noexcept { return std::isfinite(seconds[static_cast<std::size_t>(way)]); }
};

/// BESTRIDE_STRATEGY, if it names a way for device memory; the names for host memory leave device memory to the model.
std::optional<cuda::TransferWay> forced_device_way();

}  // namespace bestride
