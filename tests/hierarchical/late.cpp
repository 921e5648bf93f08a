// SPDX-License-Identifier: Apache-2.0
// A root that is ahead of a receiver must not fill the receiver's memory: its short messages complete only when the
// receiver receives them.
#include <vector>

#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

/// Four pieces of 8 KiB, which MPI libraries send eagerly.
constexpr int bytes = 32 << 10, go = 1;

void root() {
  std::vector<char> data(bytes, 7);
  MPI_Request request;
  CHECK(MPI_Ibcast(data.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  // After two round trips, all pieces that can be sent have been sent.
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Send(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int through = 0;
    for (int i = 0; i < 1000 && !through; ++i) MPI_Test(&request, &through, MPI_STATUS_IGNORE);
    CHECK(!through);
  }
  MPI_Send(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void late() {
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD);
  }
  MPI_Recv(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<char> data(bytes);
  CHECK(MPI_Bcast(data.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(data == std::vector<char>(bytes, 7));
}

}  // namespace

MPI_CASE(root_waits_for_a_late_receiver) {
  std::vector<char> first(bytes);
  MPI_Bcast(first.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);  // creates the objects that later calls reuse
  world_rank() == 0 ? root() : late();
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
