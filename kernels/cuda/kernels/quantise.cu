// SPDX-License-Identifier: Apache-2.0
// Entry point of the quantisation kernel on the device. All code is in quantise_tile.hpp.
#include "kernels/cuda/kernels/device_team.hpp"
#include "kernels/cuda/kernels/quantise_tile.hpp"

extern "C" __global__ void __launch_bounds__(bestride::cuda::threads_per_block,
                                             bestride::cuda::blocks_per_multiprocessor)
    bestride_quantise(const __grid_constant__ bestride::cuda::QuantiseWork work) {
  using namespace bestride::cuda;
  __shared__ alignas(16) unsigned char shared[quantise_shared_bytes];
  DeviceTeam team(shared, nullptr);
  quantise_tiles(team, work, blockIdx.x, gridDim.x);
}
