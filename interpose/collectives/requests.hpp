// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests of collectives that Bestride carries out. The application gets real requests of the MPI library. Each is an
// empty receive from this rank itself, on a private communicator; the message is sent when the operation has ended. So
// every completion function works on it, also mixed with other requests.
#include <mpi.h>

#include <memory>

#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/queue.hpp"
#include "interpose/message/completion.hpp"

namespace bestride::inline interpose {

/// Called in MPI_Init.
bool open_requests() noexcept;

/// Takes over an operation; starts it, or makes a persistent request of it. Returns MPI's error code.
int make_request(std::shared_ptr<CollectiveQueue> queue, std::unique_ptr<Operation> operation, bool persistent,
                 MPI_Request* request) noexcept;

/// Called when an operation with this Operation::request_tag has ended. If not `good`, the request completes with an
/// error of the library, so every completion function reports it. Local: the receive has been posted.
void complete_request(int tag, bool good) noexcept;

/// Calls MPI_Cancel or MPI_Request_free for a nonblocking collective of the library, in place of such a request: MPI
/// does not permit it, and MPICH raises an error on MPI_COMM_WORLD, whose handler may throw. The collective goes on.
int on_empty_collective(int (*call)(MPI_Request*));

}  // namespace bestride::inline interpose
