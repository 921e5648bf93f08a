// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes waiting ranks yield the processor.
//
// MPICH waits by calling its progress engine again and again. If a host has more ranks than processors, a waiting rank
// keeps the processor for its whole time slice, although the rank that it waits for needs it: a barrier of four ranks
// on two processors takes 8 to 24 ms instead of 0.1 (docs/decisions/waiting.md). MPICH over UCX makes progress by
// calling ucp_worker_progress, which returns the number of completed events. Here the MPI library's import of that
// function is replaced by a function that yields the processor if this number is 0. So every call that waits yields, in
// all its forms. Nothing else changes: MPI calls take the same paths as without Bestride.

namespace bestride::inline interpose {

/// Replaces the import. Call after MPI_Init, from one thread, at most once. False if the MPI library has no such import
/// (MPICH over libfabric); then nothing has changed. Lasts until the process ends.
bool yield_when_idle() noexcept;

/// True after yield_when_idle() has succeeded. Thread-safe.
bool yields_when_idle() noexcept;

}  // namespace bestride::inline interpose
