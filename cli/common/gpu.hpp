// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects the GPUs in a child process, because initializing a driver may crash or hang.
#include <string>

#include "perfmodel/calibrate/device/gpu_session.hpp"

namespace bestride::inline cli {

GpuSummary ask_about_gpus();

/// "CUDA 13.0, 2 devices: NVIDIA H100 80GB HBM3, capability 9.0; ...", or why there is none.
std::string gpu_text(const GpuSummary& summary);

}  // namespace bestride::inline cli
