// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/job.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/gpu/late.hpp"
#include "interpose/back/gpu/way.hpp"
#include "interpose/back/hierarchical/predefined.hpp"
#include "interpose/back/hierarchical/progress_thread.hpp"
#include "interpose/back/hierarchical/requests.hpp"
#include "interpose/back/hierarchical/world.hpp"
#include "interpose/back/runtime.hpp"

namespace bestride {
namespace {

/// Never destroyed: MPI may be called from other libraries' destructors.
struct Joined {
  explicit Joined(const Topology& world, const JobSettings& given) noexcept
      : settings(given), chooser(given.parameters), job{world, settings, chooser, MPI_COMM_NULL, 0} {}
  JobSettings settings;
  CollectiveChooser chooser;
  Job job;
};
alignas(Joined) unsigned char storage[sizeof(Joined)];
constinit std::atomic<const Job*> joined{nullptr};

JobSettings settings_here(const CollectiveMeasurements* measured) noexcept {
  const Settings& settings = Settings::get();
  JobSettings own;
  const CollectiveMode mode = collective_mode(settings.text("BESTRIDE_COLLECTIVES"));
  own.parameters = parameters_of(measured ? *measured : CollectiveMeasurements{}, mode);
  own.window_limit = settings.size("BESTRIDE_WINDOW_LIMIT");
  own.cache_bytes = settings.size("BESTRIDE_CACHE_BYTES");
  struct sysinfo machine;
  if (sysinfo(&machine) == 0)
    own.cache_bytes = std::min<std::int64_t>(own.cache_bytes, static_cast<std::int64_t>(machine.totalram / 16 * machine.mem_unit));
  own.reassociate = settings.flag("BESTRIDE_REASSOCIATE");
  const std::string& codes = settings.text("BESTRIDE_QUANTIZE");
  own.quantise = codes == "int8" ? 8 : codes == "int4" ? 4 : 0;
  return own;
}

/// A buffer may be anywhere, since the library takes it wherever it is, and nobody may ask where.
bool device_memory_unseen() noexcept { return Settings::get().text("BESTRIDE_GPU") == "off" && gpu_aware(); }

}  // namespace

const Job* job() noexcept { return joined.load(std::memory_order_acquire); }

void join_job(const CollectiveMeasurements* measured) noexcept {
  const Topology* world = world_topology();
  if (!world || world->nodes() < 2) return;
  JobSettings settings = settings_here(measured);
  MPI_Comm wire = MPI_COMM_NULL;
  int bad = real.Comm_dup(MPI_COMM_WORLD, &wire) != MPI_SUCCESS || !runtime().comms.find(MPI_COMM_WORLD);
  if (device_memory_unseen()) {
    bad = 1;
    say_once("gpu.unseen", "BESTRIDE_GPU=off: collectives of all ranks are left to the MPI library, which takes device memory, too");
  }
  if (wire != MPI_COMM_NULL) real.Comm_set_errhandler(wire, MPI_ERRORS_RETURN);
  int* largest = nullptr;
  int found = 0;
  if (!bad) bad = real.Comm_get_attr(wire, MPI_TAG_UB, &largest, &found) != MPI_SUCCESS || !found;
  // All go the same way, also where one of them could not.
  int any_bad = 1;
  if (real.Allreduce(&bad, &any_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS || any_bad) return;
  if (real.Bcast(&settings, sizeof settings, MPI_BYTE, 0, wire) != MPI_SUCCESS) return;
  if (!settings.parameters.intact() || settings.parameters.mode == CollectiveMode::library) return;
  if (!open_requests()) return;
  read_predefined();
  auto* all = new (storage) Joined(*world, settings);
  all->job.wire = wire;
  all->job.largest_tag = *largest;
  joined.store(&all->job, std::memory_order_release);
  engage_late_collectives();
  if (CommEntry* everyone = runtime().comms.find(MPI_COMM_WORLD)) everyone->collectives.agree(MPI_COMM_WORLD, *everyone);
}

void leave_job() noexcept {
  const Job* all = joined.exchange(nullptr, std::memory_order_acq_rel);
  if (!all) return;
  end_progress_thread();
  close_requests();
  MPI_Comm wire = all->wire;
  real.Comm_free(&wire);
}

}  // namespace bestride
