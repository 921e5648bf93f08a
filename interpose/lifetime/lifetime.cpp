// SPDX-License-Identifier: Apache-2.0
#include "interpose/lifetime/lifetime.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "base/variables.hpp"
#include "datatype/build.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/progress_thread.hpp"
#include "interpose/device/batch_launch.hpp"
#include "interpose/device/deferred_sends.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "interpose/engine/engine.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/yielding_progress.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/window_count.hpp"
#include "interpose/peers/processors.hpp"
#include "interpose/peers/world_topology.hpp"
#include "interpose/report/gather.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline interpose {
namespace {

/// If srun's --mpi does not fit the MPI library, the tasks do not find each other: each is a job of one rank, like a
/// program of a batch script that was not started by srun.
void warn_about_lone_tasks() noexcept {
  const char* const tasks = std::getenv("SLURM_NTASKS");
  const char* const task = std::getenv("SLURM_PROCID");
  if (!tasks || !task || !std::getenv("SLURM_STEP_ID") || std::getenv("PMI_RANK") || std::getenv("PMIX_RANK")) return;
  if (std::atoi(tasks) > 1 && std::atoi(task) == 0)
    warn_once(
        "slurm",
        "srun started %s tasks, but this task's MPI_COMM_WORLD has one rank, as if each were a job of its own; try "
        "srun --mpi=pmi2 ('srun --mpi=list' shows the choices)",
        tasks);
}

/// `processors`: the result of processors_of_ranks().
void yield_if_crowded(const Locality& here, int processors) noexcept {
  const std::string& text = Settings::get().text("BESTRIDE_YIELD");
  const bool crowded = processors > 0 && here.local_ranks > processors;
  if (text == "off" || (text == "auto" && !crowded)) return;
  if (!yield_when_idle()) {
    log_info_once("yield", "ranks that wait keep their processor: this MPI library does not wait through UCX");
  } else if (here.local_rank == 0) {
    log_info_once("yield", "ranks that wait yield their processor (%d ranks on this host, %d processors)",
                  here.local_ranks, processors);
  }
}

extern "C" int copy_nothing(MPI_Comm, int, void*, void*, void*, int* copies) {
  *copies = 0;
  return MPI_SUCCESS;
}

std::string library_version() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  real.Get_library_version(version, &length);
  return short_mpi_version(version);
}

double now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Lifetime::use_engine(Runtime& runtime) noexcept {
  if (runtime.options_.forced) return;  // one of the strategies that change the message
  // With other libraries, not all messages pass the engine.
  const char* const why_not = runtime.library_known() ? replace_engine() : "it is not MPICH 4.0 over UCX";
  runtime.engine_ = !why_not;
  if (why_not) log_info_once("engine", "the MPI library packs the fragments of its messages itself: %s", why_not);
}

void Lifetime::announce(Runtime& runtime) noexcept {
  use_engine(runtime);
  runtime.peer_discovery_.announce(runtime.contiguous_.groups);
  runtime.participants_.announce(
      {runtime.options_.all_ranks != RuntimeOptions::AllRanks::no, runtime.options_.reporting},
      runtime.options_.all_ranks == RuntimeOptions::AllRanks::yes);
}

void Lifetime::begin(Runtime& runtime) noexcept {
  if (runtime.initialized_.exchange(true)) return;
  const FloatEnvironment floats;
  runtime.ends_with_comm_self_ = end_with_comm_self();
  int rank = 0;
  int ranks = 1;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || real.Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
    return;
  runtime.locality_ = Locality::from_environment(rank, ranks);
  runtime.peer_discovery_.confirm(rank, ranks);
  runtime.start_time_ = now();
  read_predefined();
  if (runtime.respell_contiguous_from() < INT64_MAX)
    for_each_predefined_number([](MPI_Datatype type) { bestride::runtime().types.insert_predefined(type); });
  runtime.comms.add_valid(MPI_COMM_WORLD);
  runtime.comms.add_valid(MPI_COMM_SELF);
  if (rank == 0) warn_about_settings(runtime);
  if (rank == 0 && runtime.options_.reporting) check_report_file();
  if (ranks == 1) warn_about_lone_tasks();
  // A communicator of one rank, so no other rank has to take part.
  if (runtime.options_.paranoid && real.Comm_dup(MPI_COMM_SELF, &runtime.paranoid_comm_) == MPI_SUCCESS)
    real.Comm_set_errhandler(runtime.paranoid_comm_, MPI_ERRORS_RETURN);
  // Bestride makes its own collective calls only if all ranks are known to make them.
  runtime.participants_.meet(rank, ranks);
  const int processors = ranks > 1 ? processors_of_ranks(runtime.all_ranks_take_part()) : 0;
  if (ranks > 1) yield_if_crowded(runtime.locality_, processors);
  learn_world_topology(runtime.locality_, runtime.all_ranks_take_part());
  if (runtime.all_ranks_take_part()) join_job(processors);
  if (runtime.options_.reporting) intercept_collectives();
}

void Lifetime::warn_about_settings(Runtime& runtime) noexcept {
  try {
    for (const UnknownVariable& unknown : unknown_variables())
      if (unknown.nearest.empty())
        warn_once(unknown.name.c_str(), "there is no variable %s; 'bestride info --env' lists them",
                  unknown.name.c_str());
      else
        warn_once(unknown.name.c_str(), "there is no variable %s; the nearest one is %s", unknown.name.c_str(),
                  unknown.nearest.c_str());
  } catch (...) {
  }
}

bool Lifetime::end_with_comm_self() noexcept {
  int key = MPI_KEYVAL_INVALID;
  if (inject_failure(FailPoint::attribute) ||
      real.Comm_create_keyval(&copy_nothing, &delete_attribute, &key, nullptr) != MPI_SUCCESS)
    return false;
  const bool set = real.Comm_set_attr(MPI_COMM_SELF, key, nullptr) == MPI_SUCCESS;
  real.Comm_free_keyval(&key);  // the attribute keeps it
  return set;
}

int Lifetime::delete_attribute(MPI_Comm, int, void*, void*) {
  end(runtime());
  return MPI_SUCCESS;
}

void Lifetime::before_last_finalize(Runtime& runtime) noexcept {
  // MPICH takes no locks from here on, not even while it calls the application's callbacks.
  if (runtime.finalizing_.load() && runtime.sessions_.load() == 0) keep_progress_thread_out_of_mpi();
}

void Lifetime::finalizing(Runtime& runtime) {
  if (runtime.finalizing_.exchange(true)) return;
  finish_freed_requests();
  if (!runtime.ends_with_comm_self_) return end(runtime);
  before_last_finalize(runtime);
}

/// Communicators are left to MPI_Finalize (quirks::comm_free_finds_lost_messages).
void Lifetime::end(Runtime& runtime) {
  if (runtime.finalized_.exchange(true)) return;
  const FloatEnvironment floats;
  start_deferred_sends();
  finish_freed_requests();
  leave_job();
  log_info_once("end",
                "at MPI_Finalize: %zu types, %zu requests, %zu layouts, %d windows and %lld bytes of idle buffers are "
                "remembered",
                runtime.types.size(), runtime.requests.size(), interned_layouts(),
                window_count.load(std::memory_order_relaxed), static_cast<long long>(runtime.pool.idle_bytes()));
  if (runtime.options_.reporting) report(runtime);
  runtime.types.stop_asking();
  runtime.paranoid_comm_ = MPI_COMM_NULL;
  if (runtime.sessions_.load(std::memory_order_acquire) == 0) shut_down(runtime);
}

void Lifetime::report(Runtime& runtime) noexcept {
  try {
    ReportHeader header;
    header.mpi_library = library_version();
    header.profile = runtime.loaded_profile()  ? runtime.loaded_profile()->path
                     : runtime.library_known() ? "built-in"
                                               : "built-in, for any MPI library";
    header.gains_if_bound = runtime.contiguous_.gains_if_bound;
    header.ranks = 1;
    header.job_seconds = now() - runtime.start_time_;
    gather_and_write(runtime.participants_, runtime.locality_.rank, header, runtime.tally.ledger());
  } catch (...) {
    warn_once("report", "no memory for the report; nothing is reported");
  }
}

void Lifetime::shut_down(Runtime& runtime) noexcept {
  runtime.forget_handles();
  if (gpu_runtime_detected()) {
    clear_graphs();
    cuda::Device::release_all();
  }
  runtime.ended_.store(true);
}

void Lifetime::session_begins(Runtime& runtime) noexcept {
  if (runtime.sessions_.fetch_add(1, std::memory_order_relaxed) == 0 && !runtime.initialized_.load())
    use_engine(runtime);
  read_predefined();
}

void Lifetime::session_ends(Runtime& runtime) {
  if (runtime.sessions_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (runtime.initialized_.load() && !runtime.finalized_.load()) return before_last_finalize(runtime);
  finish_freed_requests();
  if (runtime.finalized_.load()) return shut_down(runtime);
  runtime.forget_handles();
  runtime.comms.clear();
  runtime.ops.clear();
  runtime.insert_pair_types();
}

}  // namespace bestride::inline interpose
