// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

namespace fault_lab {
namespace {

enum GroupMessage { across };

/// Two halves of the ranks, and an intercommunicator of both.
class Halves {
 public:
  explicit Halves(const Job& job) : half(job.ranks / 2), lower(job.rank < half) {
    MPI_Comm_split(job.first, lower ? 0 : 1, job.rank, &mine);
    MPI_Intercomm_create(mine, 0, job.first, lower ? half : 0, 1, &both);
  }
  ~Halves() {
    MPI_Comm_free(&both);
    MPI_Comm_free(&mine);
  }
  Halves(const Halves&) = delete;
  Halves& operator=(const Halves&) = delete;

  bool in_lower(int rank) const { return rank < half; }
  /// Rank in its half.
  int member(int rank) const { return in_lower(rank) ? rank : rank - half; }
  int first_of(bool of_lower) const { return of_lower ? 0 : half; }
  int size_of(bool of_lower, int ranks) const { return of_lower ? half : ranks - half; }

  const int half;
  const bool lower;
  MPI_Comm mine = MPI_COMM_NULL, both = MPI_COMM_NULL;
};

/// The rank that broadcasts. The rank of the fault is the root, its neighbor, or in the other half.
int root_of(const Job& job, const Halves& halves) {
  const int rank = job.plan.rank;
  const bool lower = halves.in_lower(rank);
  switch (job.plan.kind) {
    case Kind::no_inter_root: return rank;
    case Kind::wrong_inter_root: return halves.first_of(!lower);
    case Kind::two_inter_roots:
      return halves.first_of(lower) + (halves.member(rank) + 1) % halves.size_of(lower, job.ranks);
    default: return job.step % job.ranks;
  }
}

}  // namespace

void groups(Job& job) {
  const Halves halves(job);
  const int root = root_of(job, halves);
  const bool receives = halves.in_lower(root) != halves.lower;
  int named = receives ? halves.member(root) : job.rank == root ? MPI_ROOT : MPI_PROC_NULL;
  if (job.trigger(Kind::no_inter_root)) named = MPI_PROC_NULL;
  if (job.trigger(Kind::two_inter_roots)) named = MPI_ROOT;
  if (job.trigger(Kind::wrong_inter_root))
    named = (halves.member(root) + 1) % halves.size_of(halves.in_lower(root), job.ranks);
  if (job.trigger(Kind::late_inter_root)) job.computation.run(job.options.pause_seconds);
  Words data = job.message(job.rank, across, job.words());
  MPI_Bcast(data.data(), int(job.words()), MPI_UINT64_T, named, halves.both);
  if (receives) job.check("a bcast between groups", data.data(), job.message(root, across, job.words()));
  MPI_Barrier(halves.both);
}

}  // namespace fault_lab
