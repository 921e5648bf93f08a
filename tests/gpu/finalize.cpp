// SPDX-License-Identifier: Apache-2.0
// MPI_Finalize directly after MPI_Isend of device memory: the message is delivered. Two ranks. With an argument the
// request is freed first, as MPI requires; afterwards the library has no objects of the driver left.
#include <cstdio>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int result = 0;
  {
    auto* out = new TypedData(small_type, 3, outgoing_seed(0));  // outlives its send
    TypedData in = incoming(small_type, 3);
    if (rank == 0) {
      MPI_Request send;
      MPI_Isend(out->address(), 3, out->type(), 1, 1, MPI_COMM_WORLD, &send);
      if (argc > 1) MPI_Request_free(&send);
    } else if (rank == 1) {
      MPI_Recv(in.address(), 3, in.type(), 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      Buffer expected = in.buffer();
      expected.scatter(in.runs(), outgoing(small_type, 3, 0).packed());
      in.fetch();
      if (in.buffer().difference(expected)) {
        std::puts("rank 1 received wrong data");
        result = 1;
      }
    }
  }
  MPI_Finalize();
  if (const auto live = driver_entry_as<int (*)()>("fake_cuda_live"); live && argc > 1) {
    // Only `out` is left, which is never freed.
    if (live() != 1) {
      std::printf("rank %d: %d objects of the driver are left, expected 1\n", rank, live());
      result = 1;
    }
  }
  return result;
}
