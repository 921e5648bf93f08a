// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions that the backend calls, by pointer, in two sets of one type.
//
// `next` holds what the application would reach without the preload: a user's call goes there, so that other preloaded
// tools still see it. `real` holds the library's own PMPI_ functions, for the backend's own calls and for calls that
// came in by a PMPI_ name. Since both have one type, an entry is written once, as a template on the set that it
// forwards to. Alternative considered: linking against PMPI_ names, which is simpler but terminates every process that
// runs with LD_BIND_NOW=1. A pointer is null if the library lacks the function; such a function is not intercepted.
#include <mpi.h>

#include <type_traits>

#include "datatype/mpi_calls.hpp"

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
// The library found at run time may be newer than this header, and these functions complete requests. Only their types
// are used.
extern "C" {
int PMPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status*);
int PMPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int PMPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status*);
}
#endif

namespace bestride::inline interpose {

struct Calls {
#define BESTRIDE_INTERCEPT(name) decltype(&PMPI_##name) name = nullptr;
#define BESTRIDE_INTERCEPT_BOTH(name) decltype(&PMPI_##name) name = nullptr;
#include "interpose/mpi/intercepted.def"
#define BESTRIDE_INTERCEPT_LAZILY(name) decltype(&PMPI_##name) name = nullptr;
#include "interpose/mpi/lazily_intercepted.def"
#define BESTRIDE_USE(name) decltype(&PMPI_##name) name = nullptr;
#define BESTRIDE_USE_OPTIONAL(name) BESTRIDE_USE(name)
#include "interpose/mpi/used.def"
};

extern constinit Calls next;
extern constinit Calls real;
extern constinit DatatypeCalls datatype_calls;

/// Every function of intercepted.def, by number: an index into per-call tables.
enum class CallId : unsigned char {
#define BESTRIDE_INTERCEPT(name) name,
#define BESTRIDE_INTERCEPT_BOTH(name) name,
#include "interpose/mpi/intercepted.def"
  count
};
/// "MPI_Isend_c"
const char* name(CallId id) noexcept;

/// "MPI_Bcast" for &Calls::Bcast. For the functions of lazily_intercepted.def, which have no CallId.
template <auto slot>
inline constexpr const char* call_name = "";
#define BESTRIDE_INTERCEPT_LAZILY(name) \
  template <>                           \
  inline constexpr const char* call_name<&Calls::name> = "MPI_" #name;
#include "interpose/mpi/lazily_intercepted.def"

/// Fills `real` and `datatype_calls`. False if a required function is missing.
bool resolve_real_calls(void* (*library_symbol)(const char*)) noexcept;

}  // namespace bestride::inline interpose
