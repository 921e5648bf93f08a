// SPDX-License-Identifier: Apache-2.0
// A call that moves integers raises no floating-point exception flag: not even "inexact", for which a program may have
// enabled a trap.
#include <mpi.h>

#include <cfenv>
#include <cstdio>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// Makes a call often enough for all choices, samples and checks of its rate.
template <class Call>
void check(const char* name, const Call& call) {
  step(name);
  int raised = 0;
  // MPICH itself raises FE_INEXACT when a connection is made.
  call();
  for (int i = 0; i < 600; ++i) {
    std::feclearexcept(FE_ALL_EXCEPT);
    call();
    raised |= std::fetestexcept(FE_ALL_EXCEPT);
  }
  if (raised) std::fprintf(stderr, "%s raises %x\n", name, static_cast<unsigned>(raised));
  CHECK_EQUAL(0, raised);
}

}  // namespace

MPI_CASE(calls_raise_no_flag) {
  watch_for_hang(25);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  std::vector<long> out(10000, 1), in(20000);
  std::vector<int> spread(3000);
  MPI_Datatype columns;
  MPI_Type_vector(100, 1, 3, MPI_INT, &columns);
  MPI_Type_commit(&columns);
  const MPI_Comm world = MPI_COMM_WORLD;
  for (const int count : {10, 1000, 5000}) {
    check("allreduce", [&] { MPI_Allreduce(out.data(), in.data(), count, MPI_LONG, MPI_SUM, world); });
    check("reduce", [&] { MPI_Reduce(out.data(), in.data(), count, MPI_LONG, MPI_MAX, 0, world); });
    check("bcast", [&] { MPI_Bcast(out.data(), count, MPI_LONG, 0, world); });
    check("allgather", [&] { MPI_Allgather(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, world); });
    check("alltoall", [&] { MPI_Alltoall(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, world); });
    check("gather", [&] { MPI_Gather(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, 0, world); });
    check("scatter", [&] { MPI_Scatter(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, 0, world); });
    check("iallgather", [&] {
      MPI_Request request;
      MPI_Iallgather(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, world, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    check("exchange", [&] {
      MPI_Request requests[2];
      MPI_Irecv(in.data(), count, MPI_LONG, other, 0, world, &requests[0]);
      MPI_Isend(out.data(), count, MPI_LONG, other, 0, world, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    });
  }
  check("barrier", [&] { MPI_Barrier(world); });
  check("columns", [&] {
    MPI_Sendrecv(spread.data(), 1, columns, other, 0, in.data(), 100, MPI_INT, other, 0, world, MPI_STATUS_IGNORE);
  });
  check("pack", [&] {
    int position = 0;
    MPI_Pack(spread.data(), 1, columns, in.data(), 8000, &position, world);
  });
  int length = 100;
  check("new types", [&] {
    MPI_Datatype type;
    MPI_Type_vector(length++ % 300 + 100, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(spread.data(), 1, type, other, 0, in.data(), 1, type, other, 0, world, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
  });
  check("new communicators", [&] {
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    for (int i = 0; i < 8; ++i) MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  });
  const int sizes[] = {2}, periods[] = {1};
  MPI_Comm ring;
  MPI_Cart_create(world, 1, sizes, periods, 0, &ring);
  check("neighbors", [&] { MPI_Neighbor_alltoall(out.data(), 500, MPI_LONG, in.data(), 500, MPI_LONG, ring); });
  MPI_Comm_free(&ring);
  MPI_Type_free(&columns);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
