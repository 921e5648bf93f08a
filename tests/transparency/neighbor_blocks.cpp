// SPDX-License-Identifier: Apache-2.0
// Neighbor collectives of strided types in which one direction is packed and the other is not because the sum of its
// blocks exceeds BESTRIDE_PACK_LIMIT. Two ranks: rank 1 sends three blocks to rank 0 and receives one.
#include <array>
#include <functional>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int elements = 2000, edges = 3, gap = -1;
constexpr std::array<int, edges> counts{elements, elements, elements};
constexpr std::array<int, edges> displacements{0, elements, 2 * elements};

/// Rank 0 has three sources and one destination, rank 1 one source and three destinations.
MPI_Comm make_graph() {
  const bool first = world_rank() == 0;
  const std::array<int, edges> peers{1 - world_rank(), 1 - world_rank(), 1 - world_rank()}, weights{1, 1, 1};
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, first ? edges : 1, peers.data(), weights.data(), first ? 1 : edges,
                                 peers.data(), weights.data(), MPI_INFO_NULL, 0, &comm);
  return comm;
}

/// Two ints of every three.
MPI_Datatype make_type() {
  MPI_Datatype two, type;
  MPI_Type_contiguous(2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 3 * sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&two);
  return type;
}

constexpr std::size_t length(int blocks) { return std::size_t{3} * elements * static_cast<std::size_t>(blocks); }
int number(int rank, std::size_t i) { return rank * 1'000'000 + static_cast<int>(i); }

/// `same_block`: rank 1 sends the same data three times.
using Call = std::function<void(const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request* request)>;
void check(bool same_block, const Call& call) {
  watch_for_hang();
  MPI_Comm comm = make_graph();
  MPI_Datatype type = make_type();
  const int rank = world_rank(), arriving = rank == 0 ? edges : 1;
  std::vector<int> out(length(edges)), in(length(arriving));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = number(rank, same_block ? i % length(1) : i);
  for (int round = 0; round < 3; ++round) {
    in.assign(in.size(), gap);
    MPI_Request request = MPI_REQUEST_NULL;
    call(out.data(), in.data(), type, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i)
      wrong += in[i] != (i % 3 == 2 ? gap : number(1 - rank, same_block ? i % length(1) : i));
    CHECK_EQUAL(0, wrong);
  }
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}

}  // namespace

MPI_CASE(neighbor_alltoallv) {
  check(false, [](const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request*) {
    MPI_Neighbor_alltoallv(out, counts.data(), displacements.data(), type, in, counts.data(), displacements.data(),
                           type, comm);
  });
}

MPI_CASE(ineighbor_alltoallv) {
  check(false, [](const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    MPI_Ineighbor_alltoallv(out, counts.data(), displacements.data(), type, in, counts.data(), displacements.data(),
                            type, comm, request);
  });
}

MPI_CASE(neighbor_alltoall) {
  // MPICH 4.0.2 swaps the first and the last block if several edges join the same two ranks.
  check(true, [](const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request*) {
    MPI_Neighbor_alltoall(out, elements, type, in, elements, type, comm);
  });
}

MPI_CASE(neighbor_allgatherv) {
  check(true, [](const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request*) {
    MPI_Neighbor_allgatherv(out, elements, type, in, counts.data(), displacements.data(), type, comm);
  });
}

MPI_CASE(ineighbor_allgather) {
  check(true, [](const int* out, int* in, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
    MPI_Ineighbor_allgather(out, elements, type, in, elements, type, comm, request);
  });
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
