// SPDX-License-Identifier: Apache-2.0
// Calls with MPI's own types on two ranks, ten of each kind, of which the report says why they were left to the MPI
// library: left_calls_test.py.
#include <mpi.h>

#include <vector>

namespace {

constexpr int calls = 10, kib = 1024;

template <class Call>
void repeat(Call call) {
  for (int i = 0; i < calls; ++i) call();
}

/// Not commutative.
void keep_first(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<double*>(inout)[i] = static_cast<double*>(in)[i];
}

void data_movement(MPI_Comm comm, double* from, double* to) {
  const int longest = 256 * kib / 8;
  const int counts[] = {longest, longest}, at[] = {0, longest};
  MPI_Request request;
  repeat([&] { MPI_Bcast(from, 1, MPI_DOUBLE, 0, comm); });
  repeat([&] { MPI_Bcast(from, 1, MPI_DOUBLE, 0, MPI_COMM_SELF); });
  repeat([&] { MPI_Gather(from, 2, MPI_DOUBLE, to, 2, MPI_DOUBLE, 1, comm); });
  repeat([&] { MPI_Scatter(from, 2, MPI_DOUBLE, to, 2, MPI_DOUBLE, 1, comm); });
  repeat([&] { MPI_Allgather(from, 2, MPI_DOUBLE, to, 2, MPI_DOUBLE, comm); });
  repeat([&] { MPI_Alltoall(from, longest, MPI_DOUBLE, to, longest, MPI_DOUBLE, comm); });
  repeat([&] { MPI_Alltoall(from, 0, MPI_DOUBLE, to, 0, MPI_DOUBLE, comm); });
  repeat([&] {
    MPI_Ialltoall(from, longest, MPI_DOUBLE, to, longest, MPI_DOUBLE, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_DOUBLE};
  const int bytes_at[] = {0, 8 * longest};
  repeat([&] { MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DOUBLE, to, counts, at, MPI_DOUBLE, comm); });
  repeat([&] {
    MPI_Ialltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, to, counts, bytes_at, types, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  repeat([&] { MPI_Alltoallw(from, counts, bytes_at, types, to, counts, bytes_at, types, comm); });
  repeat([&] {
    MPI_Igatherv(from, longest, MPI_DOUBLE, to, counts, at, MPI_DOUBLE, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

void reductions(MPI_Comm comm, double* from, double* to) {
  const int count = 64 * kib / 8, counts[] = {count / 2, count / 2};
  MPI_Op first;
  MPI_Op_create(keep_first, 0, &first);
  MPI_Request request;
  repeat([&] { MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, comm); });
  repeat([&] { MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_PROD, comm); });
  repeat([&] {
    MPI_Iallreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  repeat([&] { MPI_Reduce(from, to, count, MPI_DOUBLE, first, 0, comm); });
  repeat([&] { MPI_Reduce_scatter(from, to, counts, MPI_DOUBLE, MPI_SUM, comm); });
  repeat([&] { MPI_Reduce_scatter_block(from, to, count / 2, MPI_DOUBLE, MPI_SUM, comm); });
  repeat([&] { MPI_Scan(from, to, count, MPI_DOUBLE, MPI_SUM, comm); });
  repeat([&] { MPI_Exscan(from, to, count, MPI_DOUBLE, MPI_SUM, comm); });
  MPI_Op_free(&first);
}

/// The first calls of a communicator.
void first_calls(double* from, double* to) {
  MPI_Comm comm, ring;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  repeat([&] { MPI_Allreduce(from, to, 8 * kib, MPI_INT, MPI_SUM, comm); });
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  // Too few for shared memory.
  for (int i = 0; i < 2; ++i) MPI_Reduce(from, to, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
  repeat([&] { MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_MAX, comm); });
  repeat([&] { MPI_Reduce(from, to, 1, MPI_DOUBLE, MPI_PROD, 0, comm); });
  MPI_Comm_free(&comm);
  const int ranks = 2, periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  repeat([&] { MPI_Neighbor_allgather(from, kib, MPI_DOUBLE, to, kib, MPI_DOUBLE, ring); });
  MPI_Comm_free(&ring);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<double> from(128 * kib, 1.5), to(128 * kib);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  // After these the ranks share memory.
  for (int i = 0; i < 3; ++i) MPI_Allreduce(from.data(), to.data(), 2 * kib, MPI_LONG, MPI_MAX, comm);
  data_movement(comm, from.data(), to.data());
  reductions(comm, from.data(), to.data());
  MPI_Comm_free(&comm);
  first_calls(from.data(), to.data());
  repeat([&] {
    MPI_Sendrecv(from.data(), 100, MPI_DOUBLE, 1 - rank, 0, to.data(), 100, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  });
  MPI_Finalize();
}
