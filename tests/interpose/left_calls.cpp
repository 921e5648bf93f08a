// SPDX-License-Identifier: Apache-2.0
// Collectives on one node that are left to the MPI library, between others that go through shared memory: each rank
// counts them, also if one rank has more to do before it leaves a call than another. If one did not, the ranks would be
// in different calls from then on.
#include <vector>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

/// Until the ranks share memory.
void many_short_calls() {
  for (int i = 0; i < 300; ++i) {
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(i * world_size(), sum);
  }
}

void short_calls(int number) {
  const int root = number % world_size();
  int from_root = world_rank() == root ? number : -1, sum = 0;
  MPI_Bcast(&from_root, 1, MPI_INT, root, MPI_COMM_WORLD);
  CHECK_EQUAL(number, from_root);
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQUAL(number * world_size(), sum);
}

}  // namespace

MPI_CASE(left_while_another_is_pending) {
  many_short_calls();
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const int ranks = world_size(), part = 1 << 18, gathered = 1 << 14;  // reduce-scatters of this size are left
  std::vector<int> given(static_cast<std::size_t>(part * ranks)), got(static_cast<std::size_t>(part));
  std::vector<int> own(gathered), all(static_cast<std::size_t>(gathered * ranks));
  for (int number = 0; number < 40; ++number) {
    for (int& each : given) each = number + world_rank();
    own.assign(own.size(), number);
    MPI_Request request;
    MPI_Iallgather(own.data(), gathered, MPI_INT, all.data(), gathered, MPI_INT, other, &request);
    if (world_rank() == number % ranks) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Reduce_scatter_block(given.data(), got.data(), part, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(number * ranks + ranks * (ranks - 1) / 2, got.back());
    short_calls(number);
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(number, all.back());
  }
  MPI_Comm_free(&other);
}

/// A call that the library refuses on one rank is none; the others make none.
MPI_CASE(refused_on_one_rank) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value = 0, many[16];
  for (int number = 0; number < 300; ++number) {
    if (world_rank() == 0 && number % 7 == 0) {
      CHECK(MPI_Bcast(&value, -1, MPI_INT, 0, comm) != MPI_SUCCESS);
      CHECK(MPI_Allgather(&value, 1, MPI_INT, many, -1, MPI_INT, comm) != MPI_SUCCESS);
    }
    int sum = 0;
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQUAL(number * world_size(), sum);
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(barriers) {
  many_short_calls();
  for (int number = 0; number < 40; ++number) {
    MPI_Barrier(MPI_COMM_WORLD);
    short_calls(number);
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
