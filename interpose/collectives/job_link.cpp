// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/job_link.hpp"

#include <chrono>
#include <new>
#include <thread>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int probe_tag = 2, answer_tag = 3, end_tag = 4;  ///< in MPI_Init, before any other use of the communicator

}  // namespace

JobLink::JobLink(const Topology& world, bool wanted) noexcept {
  int rank = 0;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return;
  const int answering = world.ranks_on(1)[0];
  if (rank != 0 && rank != answering) return;
  role_ = rank == 0 ? Role::measures : Role::answers;
  peer_ = rank == 0 ? answering : 0;
  // Written once, so that no exchange includes the page faults.
  if (!wanted || inject_failure(FailPoint::link)) return;
  try {
    buffer_ = make_mapped<std::array<unsigned char, link_probe_bytes>>();
  } catch (const std::bad_alloc&) {
  }
}

std::optional<LinkSpeed> JobLink::measure(MPI_Comm comm) noexcept {
  if (role_ == Role::measures) {
    const std::optional<LinkSpeed> speed = probe_link([&](std::int64_t bytes) {
      const auto start = Clock::now();
      if (real.Send(buffer_->data(), static_cast<int>(bytes), MPI_BYTE, peer_, probe_tag, comm) != MPI_SUCCESS ||
          real.Recv(nullptr, 0, MPI_BYTE, peer_, answer_tag, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1.0;
      return std::chrono::duration<double>(Clock::now() - start).count();
    });
    real.Send(nullptr, 0, MPI_BYTE, peer_, end_tag, comm);
    return speed;
  }
  while (role_ == Role::answers) {
    MPI_Status status;
    if (real.Recv(buffer_->data(), static_cast<int>(link_probe_bytes), MPI_BYTE, peer_, MPI_ANY_TAG, comm, &status) !=
            MPI_SUCCESS ||
        status.MPI_TAG == end_tag || real.Send(nullptr, 0, MPI_BYTE, peer_, answer_tag, comm) != MPI_SUCCESS)
      break;
  }
  return std::nullopt;
}

int sleeping_bcast(void* data, int bytes, MPI_Comm comm) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = real.Ibcast(data, bytes, MPI_BYTE, 0, comm, &request);
  for (int done = 0; error == MPI_SUCCESS && !done;) {
    error = real.Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return error;
}

}  // namespace bestride::inline interpose
