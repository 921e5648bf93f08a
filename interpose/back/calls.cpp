// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/calls.hpp"

#include "interpose/back/fail.hpp"

namespace bestride {

constinit Calls next;
constinit Calls real;
constinit DatatypeCalls datatype_calls;

namespace {

constexpr const char* names[] = {
#define BESTRIDE_ENGAGE(name) "MPI_" #name,
#define BESTRIDE_ENGAGE_BOTH(name) "MPI_" #name,
#include "interpose/back/engaged.def"
};

template <class Pointer>
bool set(Pointer& pointer, void* symbol) noexcept {
  pointer = reinterpret_cast<Pointer>(symbol);
  return pointer != nullptr;
}

}  // namespace

const char* name(CallId id) noexcept { return names[static_cast<int>(id)]; }

bool resolve_real_calls(void* (*library_symbol)(const char*)) noexcept {
  if (fail_here(FailPoint::symbol)) return false;
  bool all = datatype_calls.resolve(library_symbol);
#define BESTRIDE_ENGAGE(name) set(real.name, library_symbol("PMPI_" #name));
#define BESTRIDE_ENGAGE_BOTH(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/back/engaged.def"
#define BESTRIDE_LATE(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/back/gpu/late.def"
#define BESTRIDE_USE(name) all &= set(real.name, library_symbol("PMPI_" #name));
#define BESTRIDE_USE_OPTIONAL(name) set(real.name, library_symbol("PMPI_" #name));
#include "interpose/back/used.def"
  // Every function that can complete a request has to be seen; all but the MPI-4.1 ones are in every library.
  return all && real.Start && real.Startall && real.Wait && real.Test && real.Waitany && real.Testany && real.Waitall &&
         real.Testall && real.Waitsome && real.Testsome && real.Request_get_status && real.Request_free && real.Type_commit &&
         real.Type_free && real.Comm_free && real.Comm_disconnect && real.Finalize;
}

}  // namespace bestride
