// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiled kernels inside this library: a fatbin, or, in a build without nvcc, a line of text that says so.

namespace bestride::cuda {

/// The argument of cuModuleLoadData. Static storage.
const void* kernel_image() noexcept;
/// False if this build has no GPU kernels; a real driver then rejects the image.
bool has_kernels() noexcept;

}  // namespace bestride::cuda
