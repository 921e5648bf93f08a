// SPDX-License-Identifier: Apache-2.0
// Messages of derived types on every kind of communicator.
#include <array>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

void ring_on(MPI_Comm comm) {
  const Ring ring(comm);
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 2);
    std::array<MPI_Request, 2> requests;
    std::array<MPI_Status, 2> statuses;
    MPI_Irecv(in.address(), 2, in.type(), ring.previous, 4, comm, &requests[0]);
    MPI_Isend(out.address(), 2, out.type(), ring.next, 4, comm, &requests[1]);
    MPI_Waitall(2, requests.data(), statuses.data());
    check_status(statuses[0], ring.previous, 4, in.type(), 2);
    in.expect(outgoing(type, 2, ring.previous).packed());
    MPI_Sendrecv(out.address(), 2, out.type(), ring.next, 4, in.address(), 2, in.type(), ring.previous, 4, comm,
                 &statuses[0]);
    in.expect(outgoing(type, 2, ring.previous).packed());
  }
}

}  // namespace

MPI_CASE(duplicate) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  ring_on(comm);
  MPI_Comm_free(&comm);
}

MPI_CASE(self) { ring_on(MPI_COMM_SELF); }

MPI_CASE(cartesian) {
  const int size = world_size(), periodic = 1;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 1, &comm);
  ring_on(comm);
  int below = 0, above = 0;
  MPI_Cart_shift(comm, 0, 1, &below, &above);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  TypedData out = outgoing(small_type, 1, rank), in = incoming(small_type, 1);
  MPI_Sendrecv(out.address(), 1, out.type(), above, 1, in.address(), 1, in.type(), below, 1, comm, MPI_STATUS_IGNORE);
  in.expect(outgoing(small_type, 1, below).packed());
  MPI_Comm_free(&comm);
}

MPI_CASE(cartesian_with_borders) {
  const int size = world_size(), periodic = 0;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  int below = 0, above = 0, rank = 0;
  MPI_Cart_shift(comm, 0, 1, &below, &above);
  MPI_Comm_rank(comm, &rank);
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, rank), in = incoming(type, 1);
    MPI_Sendrecv(out.address(), 1, out.type(), above, 1, in.address(), 1, in.type(), below, 1, comm, MPI_STATUS_IGNORE);
    if (below == MPI_PROC_NULL)
      in.expect_untouched();
    else
      in.expect(outgoing(type, 1, below).packed());
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(split_in_reverse) {
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
  ring_on(comm);
  MPI_Comm_free(&comm);
}

MPI_CASE(between_two_groups) {
  if (world_size() < 2) return;
  MPI_Comm half, inter;
  const int color = world_rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 17, &inter);
  int rank = 0, others = 0;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &others);
  if (rank < others) {
    TypedData out = outgoing(list_type, 1, world_rank()), in = incoming(list_type, 1);
    MPI_Status status;
    MPI_Sendrecv(out.address(), 1, out.type(), rank, 1, in.address(), 1, in.type(), rank, 1, inter, &status);
    check_status(status, rank, 1, in.type(), 1);
    in.expect(outgoing(list_type, 1, 2 * rank + 1 - color).packed());
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

MPI_CASE(handle_reused_for_another_group) {
  for (int i = 0; i < 20; ++i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? world_rank() : -world_rank(), &comm);
    const Ring ring(comm);
    TypedData out = outgoing(small_type, 1, ring.rank), in = incoming(small_type, 1);
    MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 1, in.address(), 1, in.type(), ring.previous, 1, comm,
                 MPI_STATUS_IGNORE);
    in.expect(outgoing(small_type, 1, ring.previous).packed());
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
