// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the transfer method between device memory and the buffer that MPI gets, and determines whether MPI accepts
// device memory.
#include <cstdint>

#include "kernels/cuda/device/device.hpp"
#include "kernels/cuda/transfer/transfer_method.hpp"
#include "model/distance.hpp"
#include "perfmodel/device/costs.hpp"
#include "perfmodel/host/strategy.hpp"

namespace bestride::inline interpose {

/// True if the MPI library accepts device pointers: BESTRIDE_GPU_AWARE, else the library's own answer
/// (MPIX_Query_cuda_support, MPIX_GPU_query_support). Queried once.
bool gpu_aware() noexcept;

/// The costs measured on this device, else the built-in ones. Thread-safe.
const DeviceCosts& device_costs(const cuda::Device& device) noexcept;

/// What a transfer is for.
struct TransferPurpose {
  CallKind kind = CallKind::isend;
  Distance distance = Distance::node;
};

struct TransferChoice {
  cuda::TransferMethod method = cuda::TransferMethod::staged;
  std::int64_t chunk = std::int64_t{1} << 20;  ///< bytes, for the pipelined method
};

/// The model's choice, or the method that BESTRIDE_STRATEGY names. `aware`: the contiguous buffer may be device memory.
/// Takes a few 100 ns: call once per message. Thread-safe.
TransferChoice choose_transfer(const cuda::DeviceLayout& plan, cuda::Device& device, TransferPurpose purpose,
                               bool aware) noexcept;

}  // namespace bestride::inline interpose
