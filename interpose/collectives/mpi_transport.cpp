// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/mpi_transport.hpp"

#include <cstring>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Transfer::handle));
Transfer transfer_of(MPI_Request request) noexcept {
  Transfer transfer;
  std::memcpy(&transfer.handle, &request, sizeof request);
  return transfer;
}

}  // namespace

Transfer MpiTransport::send(int rank, const void* data, std::int64_t bytes, VirtualChannel line) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto to = static_cast<std::size_t>(rank);
  const auto start = unacknowledged_[to].synchronous(bytes) ? real.Issend : real.Isend;
  if (start(data, static_cast<int>(bytes), MPI_BYTE, world_ranks_[to], tag(line), comm_, &request) != MPI_SUCCESS)
    broken_ = true;
  return transfer_of(request);
}

Transfer MpiTransport::receive(int rank, void* data, std::int64_t bytes, VirtualChannel line) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (real.Irecv(data, static_cast<int>(bytes), MPI_BYTE, world_ranks_[static_cast<std::size_t>(rank)], tag(line),
                 comm_, &request) != MPI_SUCCESS)
    broken_ = true;
  return transfer_of(request);
}

bool MpiTransport::done(Transfer& transfer) noexcept {
  MPI_Request request;
  std::memcpy(&request, &transfer.handle, sizeof request);
  int flag = 0;
  MPI_Status status;
  if (real.Test(&request, &flag, &status) != MPI_SUCCESS) broken_ = true;
  transfer.handle = transfer_of(request).handle;
  int bytes = 0;
  if (flag && real.Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED)
    transfer.bytes = bytes;
  return flag && !broken_;
}

void MpiTransport::poll() noexcept {
  // MPICH makes progress only if it finds no message.
  int flag = 0;
  real.Iprobe(MPI_ANY_SOURCE, no_messages_tag, comm_, &flag, MPI_STATUS_IGNORE);
}

}  // namespace bestride::inline interpose
