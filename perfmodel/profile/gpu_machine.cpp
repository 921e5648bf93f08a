// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/gpu_machine.hpp"

namespace bestride::inline perfmodel {

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string gpu_name(const cuda::Driver& driver, cuda::DeviceOrdinal device) {
  char name[256] = "";
  if (driver.cuDeviceGetName(name, sizeof name, device) != cuda::code::success || !*name) return "";
  name[sizeof name - 1] = 0;
  return std::string(name) + ", CUDA " + cuda_version_text(driver.version());
}

std::string why_other_gpu(const MachineFingerprint& profile, const cuda::Driver& driver, cuda::DeviceOrdinal device) {
  MachineFingerprint measured, here;
  measured.gpu = profile.gpu;
  here.gpu = gpu_name(driver, device);
  return why_stale(measured, here);
}

}  // namespace bestride::inline perfmodel
