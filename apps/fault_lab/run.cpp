// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <cstdlib>

#include "faults.hpp"
#include "phases.hpp"

namespace fault_lab {
namespace {

void finalize_early(Job& job) {
  if (!job.trigger(Kind::early_finalize)) return;
  MPI_Finalize();
  std::exit(0);
}

void communicate(Job& job) {
  switch (job.phase) {
    case Phase::halo: return halo(job);
    case Phase::ring: return ring(job);
    case Phase::collectives: return collectives(job);
    case Phase::farm:
      return farm(job, job.now(Kind::waiting_master) ? job.options.pause_seconds / job.options.tasks : 0);
    case Phase::windows: return windows(job);
    case Phase::groups: return groups(job);
    case Phase::blocks: return blocks(job);
    case Phase::files: return files(job);
  }
}

void run_phase(Job& job) {
  slow_down(job);
  if (job.phase != Phase::farm) job.compute();  // the workers of the farm compute in their tasks
  crash(job);
  stall(job);
  hold_progress(job);
  finalize_early(job);
  interrupt(job);
  communicate(job);
}

}  // namespace

Outcome run(Job& job) {
  share_one_core(job);
  {
    const Listener listener(job);
    for (job.step = 0; job.step < job.options.steps; ++job.step) {
      for (const Phase phase : job.options.phases) job.phase = phase, run_phase(job);
      checkpoint(job);
    }
  }
  const std::uint64_t own[2] = {mix(job.checksum, std::uint64_t(job.rank)), std::uint64_t(job.wrong)};
  std::uint64_t total[2] = {};
  MPI_Allreduce(own, total, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return {total[0], static_cast<long long>(total[1])};
}

}  // namespace fault_lab
