// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which way a message between device memory and the buffer MPI is handed goes; and whether MPI takes device memory itself.
#include <cstdint>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/way.hpp"
#include "model/distance.hpp"
#include "perfmodel/device_costs.hpp"
#include "perfmodel/strategy.hpp"

namespace bestride {

/// The MPI library takes device pointers: BESTRIDE_GPU_AWARE, else what the library says of itself (MPIX_Query_cuda_support,
/// MPIX_GPU_query_support). Asked once.
bool gpu_aware() noexcept;

/// What was measured of this device, else the built-in figures. Thread-safe.
const DeviceCosts& device_costs(const cuda::Device& device) noexcept;

/// What the bytes are moved for.
struct Errand {
  CallKind kind = CallKind::isend;
  Distance distance = Distance::node;
};

struct Way {
  cuda::TransferWay way = cuda::TransferWay::staged;
  std::int64_t chunk = std::int64_t{1} << 20;  ///< bytes, pipelined
};

/// The model's answer, or what BESTRIDE_STRATEGY names. `aware`: the contiguous side may be device memory. Takes a few 100 ns: once a message.
/// Thread-safe.
Way transfer_way(const cuda::Plan& plan, cuda::Device& device, Errand errand, bool aware) noexcept;

}  // namespace bestride
