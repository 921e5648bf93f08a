// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the entries of the functions that are intercepted on demand (handling on_demand and refuse in
// interpose/preload/functions.tsv).
#include "interpose/collectives/pending.hpp"
#include "interpose/device/deferred_sends.hpp"
#include "interpose/device/detection.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

/// Call at the start of each entry: starts the deferred sends, because the preload library no longer does it for these
/// functions. Returns true if a buffer may be device memory.
[[gnu::always_inline]] inline bool before_on_demand_call() noexcept {
  progress_pending_collectives();
  if (!gpu_runtime_detected()) [[likely]]
    return false;
  start_deferred_sends();
  return true;
}

/// The entries of a function, by name; null for a name by which it is not intercepted.
template <class Function>
struct OnDemandEntries {
  Function* by_mpi_name = nullptr;
  Function* by_pmpi_name = nullptr;
};
extern "C" {
#define BESTRIDE_ON_DEMAND(name, ...) extern const OnDemandEntries<decltype(PMPI_##name)> bestride_entries_##name;
#define BESTRIDE_REFUSE(name, ...) extern const OnDemandEntries<decltype(PMPI_##name)> bestride_entries_##name;
#include "mpi_functions.inc"
}

/// Defines the entries of a function. `body`: a template on the Calls set to which the call is forwarded, on the
/// pointer in it, and on what follows `body`. Its other arguments follow from the type of the MPI function, so one body
/// serves every form and size of a call, and the compiler rejects it for any other function.
#define BESTRIDE_ON_DEMAND_ENTRY(name, body, ...)                                                \
  BESTRIDE_CHECK_ROW(name)                                                                       \
  BESTRIDE_BY_MPI_NAME_##name(                                                                   \
      extern "C" constinit const OnDemandEntries<decltype(PMPI_##name)> bestride_entries_##name{ \
          &body<next, &Calls::name __VA_OPT__(, ) __VA_ARGS__> BESTRIDE_BY_PMPI_NAME_##name(     \
              , &body<real, &Calls::name __VA_OPT__(, ) __VA_ARGS__>)};)
/// The same for MPI_name and MPI_name_c.
#define BESTRIDE_ON_DEMAND_SIZES(name, ...) \
  BESTRIDE_ON_DEMAND_ENTRY(name, __VA_ARGS__) BESTRIDE_ON_DEMAND_ENTRY(name##_c, __VA_ARGS__)
/// The same for all forms of a collective: MPI_Name, MPI_Iname and MPI_Name_init.
#define BESTRIDE_ON_DEMAND_FORMS(Name, Iname, body) \
  BESTRIDE_ON_DEMAND_SIZES(Name, body) BESTRIDE_ON_DEMAND_SIZES(Iname, body) BESTRIDE_ON_DEMAND_SIZES(Name##_init, body)

}  // namespace bestride::inline interpose
