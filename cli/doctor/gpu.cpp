// SPDX-License-Identifier: Apache-2.0
// The doctor's check of the GPU: driver, kernels, and whether the profile's curves are of this GPU.
#include "cli/common/gpu.hpp"
#include "cli/doctor/checks.hpp"
#include "kernels/cuda/driver/image.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* gpu_check = "gpu";

void check_curves(Findings& findings, const GpuSummary& summary) {
  const std::string path = find_profile_path();
  if (path.empty()) return;  // reported by check_profile
  const auto profile = MachineProfile::load(path);
  if (!profile) return;
  const DeviceMeasurements& measured = profile->device().measured();
  MachineFingerprint here;
  here.gpu = summary.name;
  if (!measured.any())
    findings.note(
        gpu_check,
        path + " has no GPU curves, so the built-in ones are used; 'bestride calibrate --only gpu' measures them");
  else if (const std::string stale = why_stale(profile->fingerprint, here); !stale.empty())
    findings.problem(gpu_check, path + ": " + stale);
  else if (measured.stand_in)
    findings.note(gpu_check, path + " has GPU curves of a stand-in driver, which are not used");
  else
    findings.ok(gpu_check, path + " has curves of this GPU");
}

}  // namespace

void check_gpu(Findings& findings) {
  const GpuSummary summary = ask_about_gpus();
  const std::string text = gpu_text(summary);
  if (summary.devices.empty()) {
    if (summary.broken) return findings.problem(gpu_check, text);
    return findings.note(gpu_check, text + "; host memory is not affected");
  }
  findings.ok(gpu_check, text);
  if (cuda::has_kernels())
    findings.ok(gpu_check, "GPU kernels are in this build");
  else
    findings.problem(gpu_check,
                     "GPU kernels are left out of this build, since nvcc was not found; build it where nvcc is");
  check_curves(findings, summary);
}

}  // namespace bestride::inline cli
