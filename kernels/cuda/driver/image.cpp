// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/image.hpp"

#include <cstdint>
#include <cstring>

extern "C" const unsigned char bestride_gpu_image[];  // cmake/BestrideGpu.cmake

namespace bestride::cuda {

const void* kernel_image() noexcept { return bestride_gpu_image; }

bool has_kernels() noexcept {
  constexpr std::uint32_t fatbin_magic = 0xBA55ED50;
  std::uint32_t start = 0;
  std::memcpy(&start, bestride_gpu_image, sizeof start);
  return start == fatbin_magic;
}

}  // namespace bestride::cuda
