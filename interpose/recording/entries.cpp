// SPDX-License-Identifier: Apache-2.0
// The recording entries of all recorded functions, generated from functions.tsv, and their installation.
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/services.hpp"
#include "interpose/recording/agent.hpp"
#include "interpose/recording/entry.hpp"

namespace bestride::inline interpose {
namespace {

template <class Function>
using RecordingEntryOf = RecordingEntry<std::remove_pointer_t<Function>>;

#define BESTRIDE_RECORD(name, ...) constinit RecordingEntryOf<decltype(&PMPI_##name)>::Below below_##name;
#include "recorded_calls.inc"
#undef BESTRIDE_RECORD

template <class Pointer>
bestride_interception wrapper_of(const char* name, Pointer entry, Pointer* below) noexcept {
  return {name, reinterpret_cast<void*>(entry), reinterpret_cast<void**>(below)};
}

#define BESTRIDE_UNWRAP_POSITIONS(...) __VA_ARGS__
#define BESTRIDE_RECORDING_ENTRY(entry, name, number, kind, waits, positions)                      \
  &RecordingEntryOf<decltype(&PMPI_##name)>::entry<&below_##name, number, RecordKind::kind, waits, \
                                                   ArgumentPositions BESTRIDE_UNWRAP_POSITIONS positions>

std::vector<bestride_interception> wrappers() {
  return {
#define BESTRIDE_RECORD(name, number, kind, waits, positions)                                                        \
  wrapper_of("MPI_" #name, BESTRIDE_RECORDING_ENTRY(call, name, number, kind, waits, positions), &below_##name.mpi), \
      wrapper_of("PMPI_" #name, BESTRIDE_RECORDING_ENTRY(call_by_pmpi_name, name, number, kind, waits, positions),   \
                 &below_##name.pmpi),
#include "recorded_calls.inc"
#undef BESTRIDE_RECORD
  };
}

}  // namespace

bool install_recording() noexcept try {
  if (Settings::get().text("BESTRIDE_RECORD") == "off" && !is_watched()) return false;
  const std::vector<bestride_interception> all = wrappers();
  preload_services->wrap(all.data(), all.size());
  return true;
} catch (...) {
  warn_once("record", "calls are not recorded: no memory");
  return false;
}

}  // namespace bestride::inline interpose
