// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short sends of device memory posted one after the other: packed in one launch when the application calls something else.
//
// MPI_Isend makes a real persistent request (MPI_Send_init) on the packing buffer, which the application takes for its nonblocking one, and
// puts it into the one queue of the process. start_posted() packs all that is queued in one launch, waits for it and starts the requests.
// It is called before everything that is neither another such post nor purely local: by the entries of this back, and by the front
// for functions that are not engaged (services.h, watch), so that no order of calls leaves a peer waiting for what is queued. What waits
// outside of MPI (a socket, a file) without a further MPI call may: MPI's rule of progress leaves that to the library.
// Alternative that lost: a launch for each and a thread that starts what is packed: a halo's 26 launches, and a thread in every job.
#include <mpi.h>

#include <atomic>

#include "interpose/back/gpu/staging.hpp"

namespace bestride {

extern constinit std::atomic<int> posted;

/// Longest message that is queued: beyond, a launch is short beside the packing.
inline constexpr std::int64_t longest_posted = std::int64_t{256} << 10;

/// Queues an inactive persistent request whose bytes `staging` packs. False: no memory, nothing has changed. Thread-safe.
bool post(MPI_Request request, StagingPtr staging) noexcept;

/// Packs and starts what is queued. A request whose bytes could not be packed is not started: its staging has failed(). Thread-safe: returns
/// when all is started that was queued before, by whomever.
void start_posted_now() noexcept;
inline void start_posted() noexcept {
  if (posted.load(std::memory_order_acquire) != 0) [[unlikely]] start_posted_now();
}
/// The same, but does not wait for another thread that is at it: for calls that the MPI library may make of itself, while it holds a
/// lock of its own that the other thread needs.
void start_posted_unless_busy() noexcept;

}  // namespace bestride
