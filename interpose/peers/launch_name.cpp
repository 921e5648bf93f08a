// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/launch_name.hpp"

#include <cstdlib>

#include "interpose/peers/pmi.hpp"

namespace bestride::inline interpose {

std::string launch_name() {
  // Hydra first: several of its jobs may run inside one Slurm step.
  if (Pmi pmi; pmi.open()) return pmi.space();
  const char* const job = std::getenv("SLURM_JOB_ID");
  const char* const step = std::getenv("SLURM_STEP_ID");
  return job && step ? "slurm-" + std::string(job) + "." + step : std::string();
}

}  // namespace bestride::inline interpose
