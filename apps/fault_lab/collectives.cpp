// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "phases.hpp"

namespace fault_lab {
namespace {

enum Message { summed, broadcast, gathered, reduced, first_sum, second_sum, nonblocking_sum, nonblocking_broadcast };

/// What an allreduce with MPI_SUM gives.
Words sums(const Job& job, int message, std::size_t count) {
  Words total(count);
  for (int rank = 0; rank < job.ranks; ++rank)
    for (std::size_t at = 0; at < count; ++at) total[at] += job.word(rank, message, at);
  return total;
}

void allreduce(Job& job) {
  if (job.plan.variant % 3 == 0 && job.trigger(Kind::missing_collective)) return;
  const Words sent = job.message(job.rank, summed, job.words());
  Words received(job.words());
  int count = int(job.words());
  MPI_Datatype type = MPI_UINT64_T;
  MPI_Op operation = MPI_SUM;
  if (job.trigger(Kind::wrong_count)) count /= 2;
  if (job.trigger(Kind::wrong_type)) type = MPI_DOUBLE;
  if (job.trigger(Kind::wrong_operation)) operation = MPI_MAX;
  MPI_Allreduce(sent.data(), received.data(), count, type, operation, job.first);
  job.check("an allreduce", received.data(), sums(job, summed, job.words()));
}

void bcast(Job& job) {
  const int root = job.step % job.ranks;
  const bool wrong = job.plan.variant % 2 == 0 && job.trigger(Kind::wrong_root);
  const int used = wrong ? (root + 1) % job.ranks : root;
  Words data = job.message(job.rank, broadcast, job.words());
  MPI_Bcast(data.data(), int(job.words()), MPI_UINT64_T, used, job.first);
  job.check("a bcast", data.data(), job.message(root, broadcast, job.words()));
}

void allgather(Job& job) {
  if (job.plan.variant % 3 == 1 && job.trigger(Kind::missing_collective)) return;
  const Words sent = job.message(job.rank, gathered, job.words());
  Words received(job.words() * std::size_t(job.ranks));
  MPI_Allgather(sent.data(), int(job.words()), MPI_UINT64_T, received.data(), int(job.words()), MPI_UINT64_T,
                job.first);
  for (int rank = 0; rank < job.ranks; ++rank)
    job.check("an allgather", received.data() + std::size_t(rank) * job.words(),
              job.message(rank, gathered, job.words()));
}

void reduce(Job& job) {
  const int root = (job.step + 1) % job.ranks;
  const bool wrong = job.plan.variant % 2 == 1 && job.trigger(Kind::wrong_root);
  const int used = wrong ? (root + 1) % job.ranks : root;
  const Words sent = job.message(job.rank, reduced, job.words());
  Words received(job.words());
  MPI_Reduce(sent.data(), received.data(), int(job.words()), MPI_UINT64_T, MPI_MAX, used, job.first);
  if (job.rank != root) return;
  Words largest(job.words());
  for (int rank = 0; rank < job.ranks; ++rank)
    for (std::size_t at = 0; at < job.words(); ++at) largest[at] = std::max(largest[at], job.word(rank, reduced, at));
  job.check("a reduce", received.data(), largest);
}

void barrier(Job& job) {
  if (job.plan.variant % 3 == 2 && job.trigger(Kind::missing_collective)) return;
  MPI_Barrier(job.first);
}

void short_sum(Job& job, MPI_Comm comm, int message) {
  const std::uint64_t sent = job.word(job.rank, message, 0);
  std::uint64_t received = 0;
  MPI_Allreduce(&sent, &received, 1, MPI_UINT64_T, MPI_SUM, comm);
  job.check("a short allreduce", &received, sums(job, message, 1));
}

void on_two_communicators(Job& job) {
  const bool swapped = job.trigger(Kind::communicator_order);
  if (swapped) short_sum(job, job.second, second_sum);
  short_sum(job, job.first, first_sum);
  if (!swapped) short_sum(job, job.second, second_sum);
}

void nonblocking(Job& job) {
  const int root = job.step % job.ranks;
  const Words sent = job.message(job.rank, nonblocking_sum, job.words());
  Words received(job.words());
  Words data = job.message(job.rank, nonblocking_broadcast, job.words());
  std::vector<MPI_Request> requests(3, MPI_REQUEST_NULL);
  MPI_Iallreduce(sent.data(), received.data(), int(job.words()), MPI_UINT64_T, MPI_SUM, job.second, &requests[0]);
  MPI_Ibcast(data.data(), int(job.words()), MPI_UINT64_T, root, job.second, &requests[1]);
  MPI_Ibarrier(job.second, &requests[2]);
  job.wait_all(requests);
  job.check("an iallreduce", received.data(), sums(job, nonblocking_sum, job.words()));
  job.check("an ibcast", data.data(), job.message(root, nonblocking_broadcast, job.words()));
}

}  // namespace

void collectives(Job& job) {
  allreduce(job);
  bcast(job);
  allgather(job);
  reduce(job);
  barrier(job);
  on_two_communicators(job);
  nonblocking(job);
}

}  // namespace fault_lab
