// SPDX-License-Identifier: Apache-2.0
// With a profile in which collectives on one node are faster through shared memory from 64 B to 4 KiB, those are
// carried out there and the others by the MPI library. Only rank 0 has the profile. The second case is also for a
// profile in which only alltoalls are faster.
#include <algorithm>
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr int calls = 100;

/// How many of these calls reach the MPI library.
template <class Call>
int left(Call call) {
  const int before = calls_seen_by_library();
  for (int i = 0; i < calls; ++i) call(i);
  return calls_seen_by_library() - before;
}
/// The same of one.
template <class Call>
int left_in(Call call, int turn) {
  const int before = calls_seen_by_library();
  call(turn);
  return calls_seen_by_library() - before;
}
template <class Call>
void expect_shared(Call call) {
  left(call);  // gets the memory
  CHECK_EQUAL(0, left(call));
}

}  // namespace

MPI_CASE(sizes_between_the_bounds_share_memory) {
  std::vector<int> from(1 << 16), to(1 << 16);
  const auto bcast = [&](int bytes) {
    return [&, bytes](int i) {
      if (world_rank() == 0) from[0] = i;
      MPI_Bcast(from.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
      CHECK_EQUAL(i, from[0]);
    };
  };
  const auto allreduce = [&](int bytes) {
    return [&, bytes](int i) {
      from[0] = i;
      MPI_Allreduce(from.data(), to.data(), bytes / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      CHECK_EQUAL(i * world_size(), to[0]);
    };
  };
  const auto gather = [&](int bytes) {  // of each rank
    return [&, bytes](int i) {
      from[0] = i;
      MPI_Gather(from.data(), bytes, MPI_BYTE, to.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    };
  };
  for (const int bytes : {64, 4096}) {
    expect_shared(bcast(bytes));
    expect_shared(allreduce(bytes));
    expect_shared(gather(bytes));
  }
  for (const int bytes : {60, 4100}) {
    CHECK_EQUAL(calls, left(bcast(bytes)));
    CHECK_EQUAL(calls, left(allreduce(bytes)));
    CHECK_EQUAL(calls, left(gather(bytes)));
  }
}

/// Ranks take unlike paths to the library: one of them has a type with gaps.
MPI_CASE(calls_that_are_left_keep_the_ranks_in_step) {
  constexpr int length = 128;
  MPI_Datatype gaps;
  MPI_Type_vector(2 * length, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  std::vector<int> from(8 * length), to(8 * length);
  const auto shared = [&](int i) {
    std::fill(from.begin(), from.end(), i + world_rank());
    MPI_Alltoall(from.data(), length, MPI_INT, to.data(), length, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQUAL(i, to[0]);
    CHECK_EQUAL(i + world_size() - 1, to[static_cast<std::size_t>(world_size() * length - 1)]);
  };
  for (int turn = 0; turn < 2 * calls; ++turn) {
    const bool here = (turn & 1) == world_rank() % 2;
    const int count = here ? 1 : 2 * length;
    const MPI_Datatype type = here ? gaps : MPI_INT;
    switch (turn % 5) {
      case 0: MPI_Bcast(from.data(), count, type, 0, MPI_COMM_WORLD); break;
      case 1: MPI_Gather(from.data(), count, type, to.data(), 2 * length, MPI_INT, 0, MPI_COMM_WORLD); break;
      case 2: MPI_Allgather(from.data(), count, type, to.data(), 2 * length, MPI_INT, MPI_COMM_WORLD); break;
      case 3: MPI_Bcast(here ? nullptr : from.data(), 0, type, 0, MPI_COMM_WORLD); break;
      default: MPI_Barrier(MPI_COMM_WORLD);
    }
    if (turn < calls)
      shared(turn);
    else
      CHECK_EQUAL(0, left_in(shared, turn));
  }
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
