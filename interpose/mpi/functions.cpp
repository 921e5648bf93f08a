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
#define BESTRIDE_FROM_START(name, ...) "MPI_" #name,
#include "mpi_functions.inc"
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
#define BESTRIDE_FUNCTION(name, required, ...) all &= set(real.name, library_symbol("PMPI_" #name)) || !required;
#include "mpi_functions.inc"
  return all;
}

}  // namespace bestride::inline interpose
