// SPDX-License-Identifier: Apache-2.0
#pragma once
// An MPI library that is loaded by dlopen(), as Python does. Our exports are hidden then (visibility.hpp). Instead the
// symbols in the library's own table in memory are given the addresses of our stubs, before objects that need the
// library are relocated. So whoever finds a function of the library finds the stub, and whoever does not find it
// without the preload, does not find it with it: RTLD_LOCAL, RTLD_DEEPBIND and dlsym() on any handle work alike.
// Only one library is redirected. A second one may be what the first is built upon (wrappers of another ABI).
#include <link.h>

#include "interpose/preload/loaded_object.hpp"

namespace bestride::preload {

/// A symbol by which another copy of this object is recognized.
inline constexpr SymbolName other_copy("bestride_version");

/// The first loaded object from `begin` on that is an MPI library; nullptr if there is none. Reads the linker's list:
/// only while the process starts, or with the linker's lock held.
const link_map* find_mpi_library(const link_map* begin) noexcept;

/// Redirects the MPI library, if one is loaded and none has been redirected. Called with the linker's lock held.
void redirect_late_library() noexcept;

/// A new handle of the redirected library; nullptr if there is none, or if it is not loaded any more. Thread-safe.
void* open_late_library() noexcept;

/// The redirected library's own MPI_X or PMPI_X; nullptr if it has none of that name, or if no library was redirected.
/// Thread-safe.
void* late_function(const char* name) noexcept;

}  // namespace bestride::preload
