// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/runtime.hpp"

#include <utility>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "base/own_stack.hpp"
#include "base/variables.hpp"
#include "model/processors.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline interpose {

constinit RuntimeStorage runtime_storage;

namespace {

/// Of packing buffers that are kept for reuse.
constexpr std::int64_t most_idle_bytes = 128 << 20;

const char* full_library_version() noexcept {
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];  // too large for a small stack
  int length = 0;
  return real.Get_library_version(version, &length) == MPI_SUCCESS ? version : "";
}

OneNodeLibrary find_library() noexcept try {
  return one_node_library(short_mpi_version(full_library_version()));
} catch (...) {  // no memory: what is safe with any library
  return OneNodeLibrary::other;
}

std::optional<MachineProfile> load_profile(const std::string& path, const char* version) {
  Result<MachineProfile> loaded = MachineProfile::load_for_predictions(path);
  std::string problem;
  if (loaded) {
    const std::string stale = why_stale(loaded->fingerprint, fingerprint_here(version));
    if (stale.empty()) return std::move(*loaded);
    problem = path + ": " + stale;
  } else {
    problem = loaded.error().text;
  }
  warn_once_per_job("profile", "%s", problem.c_str());
  return std::nullopt;
}

/// Respelling contiguous messages gains a factor of 2 to 3 between cores that share a cache and loses as much between
/// others, so by default only messages between ranks at a near distance are respelled. In a virtual machine the
/// distance is not known: a host moved two virtual processors, and a gain of 1.6 became a loss of 2. With a forced
/// strategy contiguous messages are not changed, unless respelling is the forced one.
ContiguousRule find_contiguous_rule(const RuntimeOptions& options) noexcept {
  ContiguousRule rule;
  if (options.forced) {
    if (*options.forced == Strategy::respell) rule.from = 1;
    return rule;
  }
  const std::string& contiguous = Settings::get().text("BESTRIDE_FORCE=contiguous");
  if (contiguous == "forward" || (contiguous == "auto" && in_virtual_machine())) return rule;
  try {
    if (const std::int64_t from = respell_contiguous_from(find_profile_path()); from > 0) {
      rule.groups = groups_of(allowed_processors());
      rule.gains_if_bound = !rule.groups.known();
      if (rule.groups.known()) rule.from = from;
    }
  } catch (...) {
    // No memory: contiguous messages are left to MPI.
  }
  return rule;
}

}  // namespace

RuntimeOptions RuntimeOptions::from_settings() {
  const Settings& settings = Settings::get();
  RuntimeOptions options;
  Strategy forced;
  if (parse(settings.text("BESTRIDE_STRATEGY"), &forced)) options.forced = forced;
  options.pack_limit = settings.size("BESTRIDE_PACK_LIMIT");
  options.paranoid = settings.flag("BESTRIDE_PARANOID");
  options.reporting = settings.flag("BESTRIDE_REPORT");
  const std::string& all_ranks = settings.text("BESTRIDE_ALL_RANKS");
  using enum AllRanks;
  options.all_ranks = all_ranks == "1" ? yes : all_ranks == "auto" ? find_out : no;
  options.packer = PackerOptions::from_settings();
  return options;
}

Runtime::Runtime()
    : pool(most_idle_bytes),
      options_(RuntimeOptions::from_settings()),
      library_(find_library()),
      contiguous_(find_contiguous_rule(options_)) {
  insert_pair_types();
}

const MachineProfile* Runtime::loaded_profile() const noexcept {
  try {
    std::call_once(profile_read_, [this] {
      const std::string path = find_profile_path();
      if (path.empty()) return;
      bool read = false;
      on_own_stack([&]() noexcept {
        const FloatEnvironment floats;
        try {
          loaded_ = load_profile(path, full_library_version());
          read = true;
        } catch (...) {
        }
      });
      if (!read) throw std::bad_alloc();
    });
  } catch (...) {
    // No memory: tried again at the next call.
  }
  return loaded_ ? &*loaded_ : nullptr;
}

Chooser Runtime::chooser() const noexcept {
  const MachineProfile* const loaded = loaded_profile();
  const FloatEnvironment floats;  // the built-in profile may be computed now
  return Chooser(loaded ? *loaded : MachineProfile::built_in(), Chooser::default_margin, library_known());
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
