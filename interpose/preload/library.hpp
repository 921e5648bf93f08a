// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the MPI library of this process and its symbols. The library is never loaded from here: only a library that is
// already mapped is used, including one that a plugin loaded with RTLD_LOCAL, which RTLD_NEXT does not find. Once
// found, the library is pinned, because slots point into it. The file system is not searched: on a shared file system
// that would cost more than the job's first calls.

namespace bestride::preload {

/// A handle of the MPI library; nullptr while none is mapped, in which case the next call searches again. Thread-safe.
void* mpi_library() noexcept;

/// The path under which mpi_library() was found; "" while there is none. Static storage.
const char* mpi_library_path() noexcept;

/// The ABI of mpi_library(): "mpich", "openmpi" or "mpi_abi"; nullptr if it is none of them. May call
/// MPI_Abi_get_version of the library, which the standard allows at any time.
const char* mpi_library_abi() noexcept;

/// The MPI library's own symbol; nullptr if it has none.
void* library_symbol(const char* name) noexcept;

/// What the application would reach without the preload: the next definition of `name` after this object in the global
/// scope, else the MPI library's; of a library that was loaded late (late_library.hpp), its own. nullptr if there is
/// none.
void* next_symbol(const char* name) noexcept;

/// True if `address` is inside this object.
bool is_ours(const void* address) noexcept;

}  // namespace bestride::preload
