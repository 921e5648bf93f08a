// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which way a message between device memory and the buffer MPI is handed goes; and whether MPI takes device memory itself.
#include <cstdint>

#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/transfer.hpp"

namespace bestride {

/// The MPI library takes device pointers: BESTRIDE_GPU_AWARE, else what the library says of itself (MPIX_Query_cuda_support,
/// MPIX_GPU_query_support). Asked once.
bool gpu_aware() noexcept;

struct Way {
  cuda::TransferWay way = cuda::TransferWay::oneshot;
  std::int64_t chunk = std::int64_t{1} << 20;  ///< bytes, pipelined
};

/// `memory`: where the user's buffer lies. Thread-safe.
Way transfer_way(const cuda::Plan& plan, cuda::Direction direction, const cuda::Memory& memory) noexcept;

}  // namespace bestride
