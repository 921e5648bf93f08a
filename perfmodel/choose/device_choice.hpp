// SPDX-License-Identifier: Apache-2.0
#pragma once
// The choice for a layout in memory that a GPU moves. Leaving such memory to MPI may not be possible, so the choice is
// the transfer method by which the bytes get to a contiguous buffer that MPI accepts. Chooser::choose_device makes it.
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/cuda/transfer/transfer_method.hpp"

namespace bestride::inline perfmodel {

/// What may be chosen.
struct DeviceAllowed {
  /// The contiguous buffer may be device memory: the MPI library is GPU-aware or, for MPI_Pack and MPI_Unpack, the
  /// caller's pack buffer is device memory.
  bool aware = false;
  /// The layout is a box (cuda::can_move() returns true).
  bool copy_engine = false;
  /// This build contains the GPU kernels, and the driver can run them.
  bool kernels = true;
  /// The profile's GPU curves are from another GPU (why_other_gpu() gave a reason), so the built-in curves are used.
  bool other_gpu = false;
  /// Taken wherever it is possible: the transfer method that BESTRIDE_STRATEGY names, if it names one
  /// (forced_device_method()).
  std::optional<cuda::TransferMethod> forced{};
};

struct DeviceChoice {
  cuda::TransferMethod method = cuda::TransferMethod::staged;
  std::int64_t chunk = 0;  ///< bytes, for `pipelined`
  /// Predicted seconds for each method, in the order of cuda::TransferMethod; infinity if not allowed. For one endpoint
  /// of the call, transfer included.
  std::array<double, cuda::transfer_method_count> seconds{};
  /// False: no method is allowed, and `method` has no meaning.
  bool possible() const noexcept { return std::isfinite(seconds[static_cast<std::size_t>(method)]); }
};

/// The transfer method that BESTRIDE_STRATEGY names, if it names one. If it names a strategy for host memory, the model
/// chooses the method.
std::optional<cuda::TransferMethod> forced_device_method();

}  // namespace bestride::inline perfmodel
