// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiled kernels inside this library: a fatbin, or, in a build without nvcc, a line of text that says so.

namespace bestride::cuda {

/// For cuModuleLoadData. Static storage.
const void* kernel_image() noexcept;
/// False: this build has no GPU kernels; a real driver refuses the image.
bool has_kernels() noexcept;

}  // namespace bestride::cuda
