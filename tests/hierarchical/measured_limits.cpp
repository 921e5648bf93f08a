// SPDX-License-Identifier: Apache-2.0
// With a profile in which collectives on one node are faster through shared memory from 64 B to 4 KiB, those are
// carried out there and the others by the MPI library. Only rank 0 has the profile.
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

int main(int argc, char** argv) { return run_cases(argc, argv); }
