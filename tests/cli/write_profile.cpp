// SPDX-License-Identifier: Apache-2.0
// write_profile FILE here|elsewhere [GPU]: a whole profile, of this machine or of another, without measurements but one of the GPU.
#include <cstdio>
#include <string>

#include "perfmodel/machine.hpp"
#include "perfmodel/profile.hpp"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  bestride::MachineFingerprint fingerprint = bestride::fingerprint_here("");
  if (std::string(argv[2]) == "elsewhere") fingerprint.cpu = "Abacus 3000";
  bestride::DeviceMeasurements device;
  if (argc == 4) {
    fingerprint.gpu = argv[3];
    device.set(bestride::DeviceFloor::launch, 1e-5);
  }
  const auto written = bestride::MachineProfile::from(bestride::Measurements(), fingerprint, device).save(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text.c_str());
  return written ? 0 : 1;
}
