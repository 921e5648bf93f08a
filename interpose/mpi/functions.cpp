// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/functions.hpp"

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/nested_calls.hpp"

namespace bestride::inline interpose {

constinit Calls next;
constinit Calls real;
constinit DatatypeCalls datatype_calls;
thread_local constinit bool in_library_call = false;

namespace {

constexpr const char* names[] = {
#define BESTRIDE_INTERCEPT(name) "MPI_" #name,
#define BESTRIDE_INTERCEPT_BOTH(name) "MPI_" #name,
#include "interpose/mpi/intercepted.def"
};

template <class Pointer>
bool set(Pointer& pointer, void* symbol) noexcept {
  pointer = reinterpret_cast<Pointer>(symbol);
  return pointer != nullptr;
}

}  // namespace

const char* name(CallId id) noexcept { return names[static_cast<int>(id)]; }

bool resolve_real_calls(void* (*library_symbol)(const char*)) noexcept {
  if (inject_failure(FailPoint::symbol)) return false;
  bool all = datatype_calls.resolve(library_symbol);
#define BESTRIDE_INTERCEPT(name) set(real.name, library_symbol("PMPI_" #name));
#define BESTRIDE_INTERCEPT_BOTH(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/mpi/intercepted.def"
#define BESTRIDE_INTERCEPT_LAZILY(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/mpi/lazily_intercepted.def"
#define BESTRIDE_USE(name) all &= set(real.name, library_symbol("PMPI_" #name));
#define BESTRIDE_USE_OPTIONAL(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/mpi/used.def"
  // Every function that can complete a request must be intercepted. All libraries have these except the ones added in
  // MPI-4.1.
  return all && real.Start && real.Startall && real.Wait && real.Test && real.Waitany && real.Testany && real.Waitall &&
         real.Testall && real.Waitsome && real.Testsome && real.Request_get_status && real.Request_free &&
         real.Type_commit && real.Type_free && real.Query_thread && real.Comm_free && real.Comm_disconnect &&
         real.Finalize;
}

}  // namespace bestride::inline interpose
