// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

namespace fault_lab {
namespace {

constexpr int directions = 4;  // -x, +x, -y, +y; the opposite of d is d ^ 1
constexpr int wrong_tag = 99;

}  // namespace

void halo(Job& job) {
  int neighbor[directions];
  MPI_Cart_shift(job.cart, 0, 1, &neighbor[0], &neighbor[1]);
  MPI_Cart_shift(job.cart, 1, 1, &neighbor[2], &neighbor[3]);
  const int count = int(job.words());
  Words sent[directions], received[directions];
  std::vector<MPI_Request> requests;
  const auto add = [&] { return &requests.emplace_back(MPI_REQUEST_NULL); };
  const bool leaves_out_receive = job.trigger(Kind::missing_receive);
  for (int d = 0; d < directions; ++d) {
    received[d].resize(job.words());
    if (leaves_out_receive && d == 0) continue;
    MPI_Irecv(received[d].data(), count, MPI_UINT64_T, neighbor[d], d ^ 1, job.cart, add());
  }
  const bool synchronous = job.now(Kind::missing_receive);
  for (int d = 0; d < directions; ++d) {
    sent[d] = job.message(job.rank, d, job.words());
    const int tag = d == 0 && job.trigger(Kind::tag_mismatch) ? wrong_tag : d;
    if (synchronous)
      MPI_Issend(sent[d].data(), count, MPI_UINT64_T, neighbor[d], tag, job.cart, add());
    else
      MPI_Isend(sent[d].data(), count, MPI_UINT64_T, neighbor[d], tag, job.cart, add());
  }
  job.wait_all(requests);
  for (int d = leaves_out_receive ? 1 : 0; d < directions; ++d)
    job.check("a halo", received[d].data(), job.message(neighbor[d], d ^ 1, job.words()));
}

}  // namespace fault_lab
