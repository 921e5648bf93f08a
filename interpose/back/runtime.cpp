// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/runtime.hpp"

#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "datatype/build.hpp"
#include "interpose/back/gpu/launch.hpp"
#include "interpose/back/hierarchical/job.hpp"
#include "interpose/back/hierarchical/world.hpp"
#include "interpose/back/owed.hpp"
#include "interpose/back/report.hpp"
#include "perfmodel/machine.hpp"

namespace bestride {

constinit RuntimeStorage runtime_storage;

namespace {

double now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<MachineProfile> load_profile(std::string* trouble) {
  const std::string path = find_profile_path();
  if (path.empty()) return std::nullopt;
  Result<MachineProfile> loaded = MachineProfile::load(path);
  if (!loaded) {
    *trouble = loaded.error().text;
    return std::nullopt;
  }
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  real.Get_library_version(version, &length);
  *trouble = why_stale(loaded->fingerprint, fingerprint_here(version));
  if (!trouble->empty()) return std::nullopt;
  return std::move(*loaded);
}

/// Where the profile's curves of the two spellings first cross, if contiguous messages may be respelled at all: the gain (2 to 3
/// times) turns into a loss (0.5) between cores that share no cache, and a profile is measured on one pair of cores. Forced
/// strategies keep contiguous messages as they are, unless it is respelling that is forced.
std::int64_t find_respell_contiguous_from(const Chooser& chooser, const RuntimeOptions& options) noexcept {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  if (options.forced) return *options.forced == Strategy::respell ? 1 : never;
  if (!options.respell_contiguous) return never;
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes += bytes / 4)
    for (CallKind kind : {CallKind::send, CallKind::receive, CallKind::isend})
      for (Distance distance : {Distance::self, Distance::node, Distance::network})
        if (chooser.wire(bytes, kind, distance) == Strategy::respell) return bytes;
  return never;
}

}  // namespace

RuntimeOptions RuntimeOptions::from_settings() {
  const Settings& settings = Settings::get();
  RuntimeOptions options;
  Strategy forced;
  if (parse(settings.text("BESTRIDE_STRATEGY"), &forced)) options.forced = forced;
  options.pack_limit = settings.size("BESTRIDE_PACK_LIMIT");
  options.pool_limit = settings.size("BESTRIDE_POOL_LIMIT");
  options.paranoid = settings.flag("BESTRIDE_PARANOID");
  options.reporting = settings.flag("BESTRIDE_REPORT");
  options.respell_contiguous = settings.text("BESTRIDE_CONTIGUOUS") == "respell";
  options.everywhere = settings.flag("BESTRIDE_EVERYWHERE");
  options.packer = PackerOptions::from_settings();
  return options;
}

Runtime::Runtime()
    : pool(Settings::get().size("BESTRIDE_POOL_LIMIT")),
      options_(RuntimeOptions::from_settings()),
      loaded_(load_profile(&profile_trouble_)),
      chooser_(loaded_ ? *loaded_ : MachineProfile::built_in()),
      respell_contiguous_from_(find_respell_contiguous_from(chooser_, options_)) {
  // Forced to something else, this rank could not keep the promise.
  if (!options_.forced || *options_.forced == Strategy::pack) presence_.announce();
  insert_pair_types();
}

void Runtime::insert_pair_types() noexcept {
  for (MPI_Datatype pair : {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT})
    if (pair != MPI_DATATYPE_NULL) types.insert(pair);
}

void Runtime::begin() noexcept {
  if (begun_.exchange(true)) return;
  int rank = 0;
  int ranks = 1;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || real.Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS) return;
  locality_ = Locality::from_environment(rank, ranks);
  presence_.confirm(rank, ranks);
  began_ = now();
  if (respell_contiguous_from_ < std::numeric_limits<std::int64_t>::max())
    for (MPI_Datatype type :
         {MPI_BYTE, MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED, MPI_LONG,
          MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
          MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX,
          MPI_C_DOUBLE_COMPLEX, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_CHARACTER, MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION,
          MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_LOGICAL})
      types.insert_predefined(type);
  comms.note(MPI_COMM_WORLD);
  comms.note(MPI_COMM_SELF);
  if (rank == 0) say_what_is_wrong();
  // Of one rank, so no other has to take part.
  if (options_.paranoid && real.Comm_dup(MPI_COMM_SELF, &paranoid_comm_) == MPI_SUCCESS)
    real.Comm_set_errhandler(paranoid_comm_, MPI_ERRORS_RETURN);
  // Collectives of ours: made only where the user says that all ranks make them.
  learn_world_topology(locality_, options_.everywhere);
  join_job(loaded_ ? &loaded_->collectives() : nullptr);
  // Made only where the user asked for a report, on all ranks.
  if (options_.reporting && real.Comm_dup(MPI_COMM_WORLD, &report_comm_) == MPI_SUCCESS)
    real.Comm_set_errhandler(report_comm_, MPI_ERRORS_RETURN);
}

void Runtime::say_what_is_wrong() noexcept {
  try {
    if (!profile_trouble_.empty()) say_once("profile", "%s", profile_trouble_.c_str());
    for (const UnknownVariable& unknown : unknown_variables())
      if (unknown.nearest.empty())
        say_once(unknown.name.c_str(), "there is no variable %s; 'bestride info --env' lists them", unknown.name.c_str());
      else
        say_once(unknown.name.c_str(), "there is no variable %s; the nearest one is %s", unknown.name.c_str(),
                 unknown.nearest.c_str());
  } catch (...) {
  }
}

void Runtime::end() noexcept {
  if (ended()) return;
  finish_orphans();
  leave_job();
  say_info("end", "at MPI_Finalize: %zu types, %zu requests, %zu layouts and %lld bytes of idle buffers are remembered", types.size(),
           in_flight.size(), interned_layouts(), static_cast<long long>(pool.idle_bytes()));
  if (report_comm_ != MPI_COMM_NULL) {
    try {
      ReportHeader header;
      char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
      int length = 0;
      real.Get_library_version(version, &length);
      header.mpi_library = short_mpi_version(version);
      header.profile = loaded_ ? loaded_->path : "built-in";
      header.ranks = locality_.ranks;
      header.job_seconds = now() - began_;
      gather_and_write(report_comm_, header, tally.ledger());
    } catch (...) {
      say_once("report", "no memory for the report; nothing is reported");
    }
    real.Comm_free(&report_comm_);
  }
  types.clear();
  if (gpu_in_play()) {
    forget_sequences();
    cuda::Device::release_all();
  }
  ended_.store(true);
  if (MPI_Comm comm = std::exchange(paranoid_comm_, MPI_COMM_NULL); comm != MPI_COMM_NULL) real.Comm_free(&comm);
}

void Runtime::session_ends() noexcept {
  if (sessions_.fetch_sub(1, std::memory_order_acq_rel) != 1 || begun_.load()) return;
  finish_orphans();
  types.clear();
  comms.clear();
  life_.fetch_add(1, std::memory_order_acq_rel);
  insert_pair_types();
}

}  // namespace bestride
