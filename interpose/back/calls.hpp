// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions this back calls, by pointer, in two sets of one type.
//
// `next` holds what the application would reach without us: a user's call goes there, so that other preloaded tools still see
// it. `real` holds the library's own PMPI_ functions, for our own traffic and for calls that came in by a PMPI_ name. One type
// for both lets an entry be written once, as a template on the set it forwards to. Linking against PMPI_ names would be simpler
// and kills every process under LD_BIND_NOW=1 (facts of other preload tools; docs/architecture.md).
// A pointer is null where the library lacks the function; such a function is not engaged.
#include <mpi.h>

#include <type_traits>

#include "datatype/mpi_calls.hpp"

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
// The library met at run time may be newer than this header, and these complete requests. Only their types are used.
extern "C" {
int PMPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status*);
int PMPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int PMPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status*);
}
#endif

namespace bestride {

struct Calls {
#define BESTRIDE_ENGAGE(name) decltype(&PMPI_##name) name = nullptr;
#define BESTRIDE_ENGAGE_BOTH(name) decltype(&PMPI_##name) name = nullptr;
#include "interpose/back/engaged.def"
#define BESTRIDE_LATE(name) decltype(&PMPI_##name) name = nullptr;
#include "interpose/back/gpu/late.def"
#define BESTRIDE_USE(name) decltype(&PMPI_##name) name = nullptr;
#define BESTRIDE_USE_OPTIONAL(name) BESTRIDE_USE(name)
#include "interpose/back/used.def"
};

extern constinit Calls next;
extern constinit Calls real;
extern constinit DatatypeCalls datatype_calls;

/// Every engaged function, by number: an index into per-call tables.
enum class CallId : unsigned char {
#define BESTRIDE_ENGAGE(name) name,
#define BESTRIDE_ENGAGE_BOTH(name) name,
#include "interpose/back/engaged.def"
  count
};
/// "MPI_Isend_c"
const char* name(CallId id) noexcept;

/// "MPI_Bcast" of &Calls::Bcast, for the functions of gpu/late.def, which have no CallId.
template <auto slot>
inline constexpr const char* call_name = "";
#define BESTRIDE_LATE(name) \
  template <> \
  inline constexpr const char* call_name<&Calls::name> = "MPI_" #name;
#include "interpose/back/gpu/late.def"

/// Fills `real` and `datatype_calls`. False if a function without which nothing works is missing.
bool resolve_real_calls(void* (*library_symbol)(const char*)) noexcept;

}  // namespace bestride
