// SPDX-License-Identifier: Apache-2.0
// One-sided epochs around collectives that may go through shared memory: what other ranks sent before a collective has
// arrived after it, as with the MPI library's own collectives.
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// Rank 0 starts and completes an epoch with all others between two collectives. After the second, each of them tests
/// once: MPI_Win_test of MPICH 4.0.2 checks for the end of the epoch before it makes progress.
template <class Collective>
void test_once_after(Collective collective) {
  watch_for_hang();
  std::vector<double> memory(16);
  MPI_Win win;
  MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(double)), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &win);
  MPI_Group everyone, group;
  MPI_Win_get_group(win, &everyone);
  const int root = 0;
  for (int round = 0; round < 12; ++round) {
    if (world_rank() == root) {
      MPI_Group_excl(everyone, 1, &root, &group);
      MPI_Win_start(group, 0, win);
      collective();
      MPI_Win_complete(win);
      collective();
    } else {
      MPI_Group_incl(everyone, 1, &root, &group);
      MPI_Win_post(group, 0, win);
      int early = 1, done = 0;
      MPI_Win_test(win, &early);
      CHECK_EQUAL(0, early);
      collective();
      collective();
      MPI_Win_test(win, &done);
      CHECK_EQUAL(1, done);
      if (!done) MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
  }
  MPI_Group_free(&everyone);
  MPI_Win_free(&win);
}

}  // namespace

MPI_CASE(win_test_after_a_barrier) {
  test_once_after([] { MPI_Barrier(MPI_COMM_WORLD); });
}

MPI_CASE(win_test_after_an_allreduce) {
  std::vector<int> out(4096, world_rank()), in(out.size());
  test_once_after([&] {
    MPI_Allreduce(out.data(), in.data(), static_cast<int>(out.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(world_size() * (world_size() - 1) / 2, in.back());
  });
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
