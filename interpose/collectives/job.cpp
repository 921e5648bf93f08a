// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/job.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/collectives/communicator.hpp"
#include "interpose/collectives/job_link.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/node_memory.hpp"
#include "interpose/collectives/progress_thread.hpp"
#include "interpose/collectives/requests.hpp"
#include "interpose/collectives/tool_behind.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "interpose/device/transfer_choice.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/yielding_progress.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/peers/world_topology.hpp"

namespace bestride::inline interpose {
namespace {

/// Never destroyed: destructors of other libraries may call MPI.
struct Joined {
  explicit Joined(const Topology& world, const JobSettings& given) noexcept
      : settings(given), chooser(given.parameters), job{world, settings, chooser, MPI_COMM_NULL, 0,
                                                        0,     false,    nullptr, false,         false} {}
  JobSettings settings;
  CollectiveChooser chooser;
  Job job;
};
alignas(Joined) unsigned char storage[sizeof(Joined)];
alignas(NodeMemory) unsigned char memory_storage[sizeof(NodeMemory)];
constinit std::atomic<const Job*> joined{nullptr};

/// The limits that `profile` measured, else the built-in ones. `profile` is of this machine and MPI library, or
/// nullptr.
OneNodeLimits one_node_limits(const MachineProfile* profile) noexcept {
  const OneNodeLimits built_in = OneNodeLimits::built_in(runtime().library());
  return profile ? limits_of(profile->one_node, built_in) : built_in;
}

/// This rank's settings. `profile` is of this machine and MPI library, or nullptr.
JobSettings settings_here(const MachineProfile* profile) noexcept {
  const Settings& settings = Settings::get();
  JobSettings own;
  const CollectiveMode mode = collective_mode(settings.text("BESTRIDE_COLLECTIVES"));
  own.beside_tools = settings.value("BESTRIDE_COLLECTIVES").source != VariableSource::built_in;
  own.parameters = parameters_of(profile ? profile->collectives() : CollectiveMeasurements{}, mode);
  own.window_limit = settings.size("BESTRIDE_WINDOW_LIMIT");
  own.cache_bytes = settings.size("BESTRIDE_CACHE_BYTES");
  struct sysinfo machine;
  if (sysinfo(&machine) == 0)
    own.cache_bytes =
        std::min<std::int64_t>(own.cache_bytes, static_cast<std::int64_t>(machine.totalram / 16 * machine.mem_unit));
  own.reassociate = settings.flag("BESTRIDE_REASSOCIATE");
  own.one_node = one_node_limits(profile);
  // With device memory a library that accepts it may add in another order, and only a rank knows where its buffers are.
  const std::string& order = settings.text("BESTRIDE_FORCE=sum_order");
  own.calls_before_order = order == "library" || gpu_aware() ? -1 : order == "first" ? 0 : SumOrder::calls_before;
  const std::string& codes = settings.text("BESTRIDE_QUANTIZE");
  own.quantize = codes == "int8" ? 8 : codes == "int4" ? 4 : 0;
  return own;
}

/// Rank 0's settings on all ranks. `measures`: rank 0 first completes them with the speed of the link.
bool share_settings(JobSettings& settings, JobLink* measures, MPI_Comm comm) noexcept {
  if (!measures) return real.Bcast(&settings, sizeof settings, MPI_BYTE, 0, comm) == MPI_SUCCESS;
  if (const std::optional<LinkSpeed> speed = measures->measure(comm)) {
    settings.parameters.use_job_link(*speed);
    log_info_once("job.link", "the link between the first two nodes carries %.3g MB/s, latency %.3g us; %s",
                  1e-6 / speed->byte_s, 1e6 * speed->latency_s,
                  speed->byte_s > settings.parameters.link.wire_byte_s ? "collectives are chosen for that"
                                                                       : "collectives are chosen as for 10 Gbit/s");
  }
  return sleeping_bcast(&settings, sizeof settings, comm) == MPI_SUCCESS;
}

/// True if device memory can't be detected although the library accepts it: BESTRIDE_GPU=off with a GPU-aware library.
bool device_memory_unseen() noexcept { return Settings::get().text("BESTRIDE_GPU") == "off" && gpu_aware(); }

}  // namespace

const Job* job() noexcept { return joined.load(std::memory_order_acquire); }

void join_job(int processors) noexcept {
  const Topology* world = world_topology();
  if (!world || world->ranks() < 2) return;
  // The settings are rank 0's. Between nodes every rank needs to know whether the link was measured.
  CommEntry* const everyone = runtime().comms.find(MPI_COMM_WORLD);
  const MachineProfile* const profile =
      world->nodes() > 1 || (everyone && everyone->rank() == 0) ? runtime().loaded_profile() : nullptr;
  JobSettings settings = settings_here(profile);
  MPI_Comm private_comm = MPI_COMM_NULL;
  int bad = real.Comm_dup(MPI_COMM_WORLD, &private_comm) != MPI_SUCCESS || !everyone;
  if (device_memory_unseen()) {
    bad = 1;
    warn_once_per_job(
        "gpu.unseen",
        "BESTRIDE_GPU=off: collectives of all ranks are left to the MPI library, which takes device memory, too");
  }
  if (private_comm != MPI_COMM_NULL) real.Comm_set_errhandler(private_comm, MPI_ERRORS_RETURN);
  if (!make_maximum()) bad = 1;
  int* largest = nullptr;
  int found = 0;
  if (!bad) bad = real.Comm_get_attr(private_comm, MPI_TAG_UB, &largest, &found) != MPI_SUCCESS || !found;
  // All ranks take the same path, also if one of them has failed.
  const ProgressThread thread = start_progress_thread(world->nodes() > 1);
  auto* const memory = new (memory_storage) NodeMemory;
  const bool shares = memory->join(*world);
  std::optional<JobLink> link;
  if (world->nodes() > 1)
    link.emplace(*world,
                 settings.parameters.mode != CollectiveMode::library && !(profile && profile->collectives().any()));
  const char* const tool = tool_behind();
  const int mine[7] = {bad,
                       thread != ProgressThread::calls_mpi,
                       !yields_when_idle(),
                       thread == ProgressThread::none,
                       !link || !link->ready(),
                       !shares || (largest && (*largest - 1) / 4 < memory->records()),
                       tool != nullptr};
  int any[7] = {1, 1, 1, 1, 1, 1, 1};
  if (real.Allreduce(mine, any, 7, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS || any[0])
    return end_progress_thread();
  memory->all_have_joined();
  if (!share_settings(settings, any[4] ? nullptr : &*link, private_comm)) return end_progress_thread();
  link.reset();
  if (any[6] && !settings.beside_tools) {
    warn_once_per_job(
        "tool",
        "collectives are left to the MPI library, because %s defines MPI functions behind this one; name it "
        "before libbestride.so in LD_PRELOAD, or set BESTRIDE_COLLECTIVES=auto if it passes all arguments "
        "on unchanged",
        tool ? tool : "a library in another rank");
    return end_progress_thread();
  }
  if (!settings.parameters.intact() || settings.parameters.mode == CollectiveMode::library)
    return end_progress_thread();
  if (!open_requests()) return end_progress_thread();
  auto* all = new (storage) Joined(*world, settings);
  all->job.private_comm = private_comm;
  // Below the tags of records, which are those of communicators on one node. They differ between nodes, between which
  // these send nothing.
  const int pairs = (*largest - 1) / 2 - 2 * memory->records();
  all->job.largest_tag = 2 * pairs + 1;
  all->job.first_record_tag_pair = pairs + 1;
  all->job.nonblocking = !any[1];
  all->job.node_memory = any[5] ? nullptr : memory;
  all->job.nonblocking_on_node = !any[5] && !any[3];
  all->job.crowded = any[2] && processors > 0 && world->max_ranks_per_node() > processors;
  real.Comm_group(MPI_COMM_WORLD, &all->job.world_group);
  joined.store(&all->job, std::memory_order_release);
  intercept_collectives();
  if (everyone) agree_on_collectives(MPI_COMM_WORLD, *everyone);
}

void leave_job() noexcept {
  const Job* all = joined.exchange(nullptr, std::memory_order_acq_rel);
  if (!all) return;
  end_progress_thread();
  if (MPI_Group world = all->world_group; world != MPI_GROUP_NULL) real.Group_free(&world);
  free_maximum();
}

}  // namespace bestride::inline interpose
