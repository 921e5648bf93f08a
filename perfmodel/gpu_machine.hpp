// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a GPU is called in a profile's fingerprint.
#include <string>

#include "kernels/cuda/driver.hpp"

namespace bestride {

/// "NVIDIA H100 80GB HBM3, CUDA 13.0": a device's name and the CUDA version of the driver. The driver must be initialised (by the
/// application); else, or if the device does not answer, "".
std::string gpu_name(const cuda::Driver& driver, cuda::DeviceOrdinal device);

/// "13.0" of 13000.
std::string cuda_version_text(int version);

}  // namespace bestride
