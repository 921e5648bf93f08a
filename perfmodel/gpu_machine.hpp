// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a GPU is called in a profile's fingerprint.
#include <string>

#include "kernels/cuda/driver.hpp"
#include "perfmodel/profile.hpp"

namespace bestride {

/// "NVIDIA H100 80GB HBM3, CUDA 13.0": a device's name and the CUDA version of the driver. The driver must be initialised (by the
/// application); else, or if the device does not answer, "".
std::string gpu_name(const cuda::Driver& driver, cuda::DeviceOrdinal device);

/// "" if the profile has no GPU curves or they are of this device and driver, else one line: what differs and what to do. For the first
/// use of a device in a process; its answer goes into DeviceAllowed::other_gpu.
std::string why_other_gpu(const MachineFingerprint& profile, const cuda::Driver& driver, cuda::DeviceOrdinal device);

/// "13.0" of 13000.
std::string cuda_version_text(int version);

}  // namespace bestride
