// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries: what the front's slots jump to. Declared with the MPI functions' own types, so that a definition whose arguments
// differ from the header is refused by the compiler (C linkage allows one type per name).
#include <mpi.h>

#include "interpose/back/calls.hpp"

extern "C" {
#define BESTRIDE_ENGAGE(name) decltype(PMPI_##name) bestride_entry_##name;
#define BESTRIDE_ENGAGE_BOTH(name) \
  decltype(PMPI_##name) bestride_entry_##name; \
  decltype(PMPI_##name) bestride_profiling_entry_##name;
#include "interpose/back/engaged.def"
}

/// Defines the entries of a function that is engaged by both its names: `body` is a function template on the Calls set the
/// call is forwarded to.
#define BESTRIDE_BOTH_ENTRIES(name, parameters, body, arguments) \
  extern "C" int bestride_entry_##name parameters { return ::bestride::body<::bestride::next> arguments; } \
  extern "C" int bestride_profiling_entry_##name parameters { return ::bestride::body<::bestride::real> arguments; }
