// SPDX-License-Identifier: Apache-2.0
// Entry points of the pack and unpack kernels on the device. All code is in move.hpp.
#include "kernels/cuda/kernels/device_team.hpp"
#include "kernels/cuda/kernels/move.hpp"

namespace bestride::cuda {
namespace {

__device__ __forceinline__ void run(const std::uint64_t* data) {
  __shared__ alignas(128) unsigned char shared[shared_bytes];
  __shared__ std::uint64_t barrier;
  DeviceTeam team(shared, &barrier);
  move(team, data, blockIdx.x, gridDim.x);
}

}  // namespace
}  // namespace bestride::cuda

// By value and __grid_constant__: the kernel reads the parameters in place, without a copy per thread.
extern "C" __global__ void __launch_bounds__(bestride::cuda::threads_per_block,
                                             bestride::cuda::blocks_per_multiprocessor)
    bestride_move_small(const __grid_constant__ bestride::cuda::SmallWork work) {
  bestride::cuda::run(work.data);
}

extern "C" __global__ void __launch_bounds__(bestride::cuda::threads_per_block,
                                             bestride::cuda::blocks_per_multiprocessor)
    bestride_move_large(const __grid_constant__ bestride::cuda::LargeWork work) {
  bestride::cuda::run(work.data);
}

extern "C" __global__ void __launch_bounds__(bestride::cuda::threads_per_block,
                                             bestride::cuda::blocks_per_multiprocessor)
    bestride_move_far(const std::uint64_t* data) {
  bestride::cuda::run(data);
}
