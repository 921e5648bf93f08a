// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests of hierarchical collectives: real requests of the MPI library, as all that the application is given. Each is a receive
// of nothing from this rank itself, on a communicator of our own; when the operation has ended, the message is sent. So every completion
// function works on it, in any mix with others.
#include <mpi.h>

#include <memory>

#include "interpose/back/hierarchical/operation.hpp"
#include "interpose/back/hierarchical/queue.hpp"
#include "interpose/back/owed.hpp"

namespace bestride {

/// In MPI_Init and MPI_Finalize.
bool open_requests() noexcept;
void close_requests() noexcept;

/// Starts an operation, or makes a persistent request of it: takes it over. Returns MPI's error code.
int give_request(std::shared_ptr<CollectiveQueue> queue, std::unique_ptr<Operation> operation, bool persistent, MPI_Request* request) noexcept;

/// An operation with this Operation::request_tag has ended. Not `good`: the request completes with an error of the library's, so that
/// every completion function stops at it. Local: the receive has been posted.
void complete_request(int tag, bool good) noexcept;

}  // namespace bestride
