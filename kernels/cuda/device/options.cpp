// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/options.hpp"

#include <array>

#include "base/variables.hpp"

namespace bestride::cuda {
namespace {

constexpr std::array<std::string_view, 6> kernel_names{"automatic", "words", "transpose", "bulk", "bytes", "ordered"};

}  // namespace

std::string_view name(GpuKernel kernel) noexcept { return kernel_names[static_cast<std::size_t>(kernel)]; }

bool parse(std::string_view text, GpuKernel* kernel) noexcept {
  for (std::size_t i = 0; i < kernel_names.size(); ++i)
    if (kernel_names[i] == text) {
      *kernel = static_cast<GpuKernel>(i);
      return true;
    }
  return false;
}

KernelOptions KernelOptions::from_settings() {
  static const KernelOptions options = [] {
    KernelOptions read;
    parse(Settings::get().text("BESTRIDE_FORCE=gpu_kernel"), &read.kernel);
    return read;
  }();
  return options;
}

}  // namespace bestride::cuda
