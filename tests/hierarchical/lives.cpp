// SPDX-License-Identifier: Apache-2.0
// Communicators of one node that live for few calls: which of these reach the MPI library.
#include <sched.h>

#include <cstdio>
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr int uses = 50;

/// With more ranks than processors, shared memory is used from the third call on: says that the case is left out.
bool crowded() {
  cpu_set_t processors;
  const bool more_ranks =
      sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) < world_size();
  if (more_ranks && world_rank() == 0) std::puts("left out: there are more ranks than processors");
  return more_ranks;
}

/// Calls use(comm, i) for i < uses. Returns how many of the calls have reached the library, and frees `comm`.
template <class Use>
int life(MPI_Comm comm, Use use) {
  const int before = calls_seen_by_library();
  for (int i = 0; i < uses; ++i) use(comm, i);
  MPI_Comm_free(&comm);
  return calls_seen_by_library() - before;
}

int alltoall_life() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return life(comm, [](MPI_Comm on, int i) {
    std::vector<int> out(static_cast<std::size_t>(world_size()), 100 * world_rank() + i), in(out.size(), -1);
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, on);
    for (int from = 0; from < world_size(); ++from) CHECK_EQUAL(100 * from + i, in[static_cast<std::size_t>(from)]);
  });
}

/// In a ring. `grid`: with the ranks on both sides; else from the one on the left to the one on the right.
int neighbor_life(bool grid) {
  const int size = world_size(), left = (world_rank() + size - 1) % size, right = (world_rank() + 1) % size;
  MPI_Comm comm;
  const int periodic = 1;
  if (grid)
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  else
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &comm);
  return life(comm, [=](MPI_Comm on, int i) {
    const int own = 100 * world_rank() + i;
    int in[2] = {-1, -1};
    MPI_Neighbor_allgather(&own, 1, MPI_INT, in, 1, MPI_INT, on);
    CHECK_EQUAL(100 * left + i, in[0]);
    if (grid) CHECK_EQUAL(100 * right + i, in[1]);
  });
}

}  // namespace

MPI_CASE(calls_pay_for_the_memory_of_later_communicators) {
  if (crowded()) return;
  CHECK_EQUAL(uses, alltoall_life());
  for (int i = 0; i < 4; ++i) alltoall_life();
  CHECK_EQUAL(3, alltoall_life());
}

MPI_CASE(edges_of_a_grid_are_found_for_later_ones) {
  if (crowded()) return;
  CHECK_EQUAL(uses, neighbor_life(true));
  for (int i = 0; i < 30; ++i) neighbor_life(true);
  CHECK_EQUAL(15, neighbor_life(true));
}

MPI_CASE(edges_of_a_graph_are_not_found_for_few_calls) {
  if (crowded()) return;
  for (int i = 0; i < 30; ++i) neighbor_life(false);
  CHECK_EQUAL(uses, neighbor_life(false));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
