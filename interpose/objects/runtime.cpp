// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/runtime.hpp"

#include <limits>
#include <utility>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "base/variables.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline interpose {

constinit RuntimeStorage runtime_storage;

namespace {

std::optional<MachineProfile> load_profile() {
  const std::string path = find_profile_path();
  if (path.empty()) return std::nullopt;
  Result<MachineProfile> loaded = MachineProfile::load(path);
  std::string problem;
  if (loaded) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    real.Get_library_version(version, &length);
    problem = why_stale(loaded->fingerprint, fingerprint_here(version));
    if (problem.empty()) return std::move(*loaded);
  } else {
    problem = loaded.error().text;
  }
  warn_once_per_job("profile", "%s", problem.c_str());
  return std::nullopt;
}

/// The smallest message size at which the profile's curves of the two spellings cross, if contiguous messages may be
/// respelled at all: the gain (a factor of 2 to 3) becomes a loss (0.5) between cores that share no cache, and a
/// profile is measured on one pair of cores. With a forced strategy contiguous messages are not changed, unless
/// respelling is the forced one.
std::int64_t find_respell_contiguous_from(const Runtime& runtime, const RuntimeOptions& options) noexcept {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  if (options.forced) return *options.forced == Strategy::respell ? 1 : never;
  if (!options.respell_contiguous) return never;
  const Chooser chooser = runtime.chooser();
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes += bytes / 4)
    for (CallKind kind : {CallKind::send, CallKind::receive, CallKind::isend})
      for (Distance distance : {Distance::self, Distance::node, Distance::network})
        if (chooser.contiguous_strategy(bytes, kind, distance) == Strategy::respell) return bytes;
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
  const std::string& all_ranks = settings.text("BESTRIDE_ALL_RANKS");
  using enum AllRanks;
  options.all_ranks = all_ranks == "1" ? yes : all_ranks == "auto" ? find_out : no;
  options.packer = PackerOptions::from_settings();
  return options;
}

Runtime::Runtime()
    : pool(Settings::get().size("BESTRIDE_POOL_LIMIT")),
      options_(RuntimeOptions::from_settings()),
      respell_contiguous_from_(find_respell_contiguous_from(*this, options_)) {
  insert_pair_types();
}

const MachineProfile* Runtime::loaded_profile() const noexcept {
  try {
    std::call_once(profile_read_, [this] {
      const FloatEnvironment floats;
      loaded_ = load_profile();
    });
  } catch (...) {
    // No memory: tried again at the next call.
  }
  return loaded_ ? &*loaded_ : nullptr;
}

Chooser Runtime::chooser() const noexcept {
  const MachineProfile* const loaded = loaded_profile();
  const FloatEnvironment floats;  // the built-in profile may be computed now
  return Chooser(loaded ? *loaded : MachineProfile::built_in());
}

void Runtime::insert_pair_types() noexcept {
  for (MPI_Datatype pair : {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT})
    types.insert_permanent(pair);
}

void Runtime::forget_handles() noexcept {
  types.clear();
  definitions.clear();
  spelled.clear();
}

}  // namespace bestride::inline interpose
