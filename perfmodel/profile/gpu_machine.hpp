// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name of a GPU in a profile's fingerprint.
#include <string>

#include "kernels/cuda/driver/driver.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// "NVIDIA H100 80GB HBM3, CUDA 13.0": the name of the device and the CUDA version of the driver. The application must
/// have initialized the driver. Returns "" if it has not, or if the device can't be queried.
std::string gpu_name(const cuda::Driver& driver, cuda::DeviceOrdinal device);

/// "" if the profile has no GPU curves or was measured on this device and driver; else one line that states the
/// difference and the remedy. Called at the first use of a device in a process; the answer determines
/// DeviceAllowed::other_gpu.
std::string why_other_gpu(const MachineFingerprint& profile, const cuda::Driver& driver, cuda::DeviceOrdinal device);

/// "13.0" for 13000.
std::string cuda_version_text(int version);

}  // namespace bestride::inline perfmodel
