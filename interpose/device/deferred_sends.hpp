// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deferred sends: consecutive short sends of device memory, packed in one launch when the application makes another
// kind of call.
//
// MPI_Isend creates a persistent request (MPI_Send_init) on the packing buffer and adds it to the one queue of the
// process. The application uses this request as a nonblocking one. start_deferred_sends() packs all queued messages in
// one launch, waits for the launch and starts the requests. It is called before every call that is neither another send
// that can be deferred nor purely local: by the entries of this backend, and through the pre-call hook of the preload
// library for functions that are not intercepted (interpose/preload/services.h). So no order of calls leaves a peer
// waiting for a queued send. A program that waits outside of MPI (on a socket, on a file) without a further MPI call
// may wait for a queued send: MPI's progress rule allows this.
// Alternative considered: one launch per send and a thread that starts the packed sends, which costs 26 launches for a
// halo exchange and a thread in every job.
#include <mpi.h>

#include <atomic>

#include "interpose/device/staging.hpp"

namespace bestride::inline interpose {

extern constinit std::atomic<int> deferred_send_count;

/// Longest message that is queued, in bytes. For a longer message the launch is short compared with the packing.
inline constexpr std::int64_t longest_deferred_bytes = std::int64_t{256} << 10;

/// Queues an inactive persistent request whose bytes `staging` packs. Returns false if there is no memory; nothing has
/// changed then. Thread-safe.
bool defer_send(MPI_Request request, StagingPtr staging) noexcept;

/// Packs and starts the queued sends. A request whose bytes could not be packed is not started, and its staging reports
/// failed(). Thread-safe: returns after all sends queued before, by any thread, are started.
void start_deferred_sends_now() noexcept;
inline void start_deferred_sends() noexcept {
  if (deferred_send_count.load(std::memory_order_acquire) != 0) [[unlikely]]
    start_deferred_sends_now();
}
/// Like start_deferred_sends(), but does not wait for another thread that is starting them. For calls that the MPI
/// library may make internally while it holds a lock that the other thread needs.
void start_deferred_sends_unless_busy() noexcept;

}  // namespace bestride::inline interpose
