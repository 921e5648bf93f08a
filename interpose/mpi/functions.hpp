// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions that the backend calls, by pointer, in two sets of one type.
//
// `next` holds what the application would reach without the preload: a user's call goes there, so that other preloaded
// tools still see it. `real` holds the library's own PMPI_ functions, for the backend's own calls and for calls that
// came in by a PMPI_ name. Since both have one type, an entry is written once, as a template on the set that it
// forwards to. Alternative considered: linking against PMPI_ names, which is simpler but terminates every process that
// runs with LD_BIND_NOW=1. A pointer is null if the library lacks the function; such a function is not intercepted.
#include <string_view>
#include <type_traits>

#include "datatype/mpi_calls.hpp"
#include "interpose/mpi/newer_functions.hpp"

namespace bestride::inline interpose {

// mpi_functions.inc lists the functions of interpose/preload/functions.tsv that this backend intercepts or uses, among
// those that mpi.h declares. It is generated for each backend, and has one line for each function:
//
//   BESTRIDE_FROM_START(name, required, starts_sends, both_names)   handling accelerate, complete or track
//   BESTRIDE_ON_DEMAND(name, ...)                                   handling on_demand
//   BESTRIDE_REFUSE(name, ...)                                      handling refuse
//   BESTRIDE_USE(name, ...)                                         handling use
//
// The facts after the name are true or false: `required` of the column of that name; `starts_sends` if the hook is
// always; `both_names` if calls are intercepted by both names under this ABI. Each macro defaults to
// BESTRIDE_FUNCTION(name, ...), which defaults to nothing. BESTRIDE_ABSENT(name), if defined, gets the functions that
// would be intercepted if mpi.h declared them.
//
// Of each function to be intercepted, the file also defines macros:
//
//   BESTRIDE_DECLARES_name            defined if mpi.h declares the function
//   BESTRIDE_BY_MPI_NAME_name(...)    its arguments if calls are intercepted by the MPI_ name, else nothing
//   BESTRIDE_BY_PMPI_NAME_name(...)   the same for the PMPI_ name

struct Calls {
#define BESTRIDE_FUNCTION(name, ...) decltype(&PMPI_##name) name = nullptr;
#include "mpi_functions.inc"
};

extern constinit Calls next;
extern constinit Calls real;
extern constinit DatatypeCalls datatype_calls;

/// The functions that are intercepted from the start.
enum class CallId : unsigned char {
#define BESTRIDE_FROM_START(name, ...) name,
#define BESTRIDE_FUNCTION(...)
#include "mpi_functions.inc"
};
/// "MPI_Isend_c"
const char* name(CallId id) noexcept;

/// True if deferred sends (interpose/device/deferred_sends.hpp) are started before the call.
consteval bool starts_deferred_sends(CallId id) noexcept {
  constexpr bool starts[] = {
#define BESTRIDE_FROM_START(name, required, starts_sends, both_names) starts_sends,
#include "mpi_functions.inc"
  };
  return starts[static_cast<int>(id)];
}
/// True if calls are intercepted by the MPI_ and the PMPI_ name.
consteval bool by_both_names(CallId id) noexcept {
  constexpr bool both[] = {
#define BESTRIDE_FROM_START(name, required, starts_sends, both_names) both_names,
#include "mpi_functions.inc"
  };
  return both[static_cast<int>(id)];
}
/// True if the table says that MPI_`name` is intercepted, whether mpi.h declares it or not.
consteval bool is_intercepted(std::string_view name) noexcept {
  constexpr const char* names[] = {
#define BESTRIDE_FUNCTION(name, ...) #name,
#define BESTRIDE_USE(...)
#define BESTRIDE_ABSENT(name) #name,
#include "mpi_functions.inc"
  };
  for (const char* each : names)
    if (name == each) return true;
  return false;
}
/// Every entry contains it.
#define BESTRIDE_CHECK_ROW(name)                                                                    \
  static_assert(::bestride::is_intercepted(#name),                                                  \
                "MPI_" #name                                                                        \
                " has an entry here, but functions.tsv does not say that it is intercepted: write " \
                "another handling there, or remove the entry");

/// "MPI_Bcast" for &Calls::Bcast. For the functions that are intercepted on demand, which have no CallId.
template <auto slot>
inline constexpr const char* call_name = "";
#define BESTRIDE_ON_DEMAND(name, ...) \
  template <>                         \
  inline constexpr const char* call_name<&Calls::name> = "MPI_" #name;
#define BESTRIDE_REFUSE(name, ...) \
  template <>                      \
  inline constexpr const char* call_name<&Calls::name> = "MPI_" #name;
#include "mpi_functions.inc"

/// Fills `real` and `datatype_calls`. False if a required function is missing.
bool resolve_real_calls(void* (*library_symbol)(const char*)) noexcept;

}  // namespace bestride::inline interpose
