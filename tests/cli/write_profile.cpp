// SPDX-License-Identifier: Apache-2.0
// write_profile FILE here|elsewhere: a whole profile without measurements, of this machine or of another.
#include <cstdio>
#include <string>

#include "perfmodel/machine.hpp"
#include "perfmodel/profile.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  bestride::MachineFingerprint fingerprint = bestride::fingerprint_here("");
  if (std::string(argv[2]) == "elsewhere") fingerprint.cpu = "Abacus 3000";
  const auto written = bestride::MachineProfile::from(bestride::Measurements(), fingerprint).save(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text.c_str());
  return written ? 0 : 1;
}
