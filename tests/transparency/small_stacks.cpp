// SPDX-License-Identifier: Apache-2.0
// transparency_small_stacks KIBIBYTES NAME: a thread with a small stack makes MPI calls, more of them than it takes
// until they go through shared memory. Below the stack are 4 MiB that nobody may touch: without them, a frame that is
// larger than the usual guard page may end in memory of something else.
#include <mpi.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int rank = 0, ranks = 1;
std::vector<double> out, in;

MPI_Comm ring() {
  static MPI_Comm comm = MPI_COMM_NULL;
  const int periodic = 1;
  if (comm == MPI_COMM_NULL) MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &comm);
  return comm;
}

struct Case {
  const char* name;
  void (*call)();
};
constexpr Case cases[] = {
    {"allreduce", [] { MPI_Allreduce(out.data(), in.data(), 4000, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); }},
    {"sum", [] { MPI_Allreduce(out.data(), in.data(), 4000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
    {"reduce", [] { MPI_Reduce(out.data(), in.data(), 4000, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }},
    {"bcast", [] { MPI_Bcast(in.data(), 4000, MPI_DOUBLE, 0, MPI_COMM_WORLD); }},
    {"allgather", [] { MPI_Allgather(out.data(), 4000, MPI_DOUBLE, in.data(), 4000, MPI_DOUBLE, MPI_COMM_WORLD); }},
    {"alltoall", [] { MPI_Alltoall(out.data(), 400, MPI_DOUBLE, in.data(), 400, MPI_DOUBLE, MPI_COMM_WORLD); }},
    {"gather", [] { MPI_Gather(out.data(), 4000, MPI_DOUBLE, in.data(), 4000, MPI_DOUBLE, 0, MPI_COMM_WORLD); }},
    {"iallgather",
     [] {
       MPI_Request request;
       MPI_Iallgather(out.data(), 400, MPI_DOUBLE, in.data(), 400, MPI_DOUBLE, MPI_COMM_WORLD, &request);
       MPI_Wait(&request, MPI_STATUS_IGNORE);
     }},
    {"neighbor_alltoall",
     [] { MPI_Neighbor_alltoall(out.data(), 400, MPI_DOUBLE, in.data(), 400, MPI_DOUBLE, ring()); }},
    // MPICH 4.0.2 takes 131 KiB to pack, and to combine integers.
    {"dup",
     [] {
       MPI_Comm comm;
       MPI_Comm_dup(MPI_COMM_WORLD, &comm);
       MPI_Comm_free(&comm);
     }},
    {"vector",
     [] {
       MPI_Datatype type;
       MPI_Type_vector(4000, 1, 2, MPI_DOUBLE, &type);
       MPI_Type_commit(&type);
       if (rank == 0) MPI_Send(out.data(), 1, type, 1, 1, MPI_COMM_WORLD);
       if (rank == 1) MPI_Recv(in.data(), 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       MPI_Type_free(&type);
     }},
};

void* call_often(void* given) {
  for (int i = 0; i < 20; ++i) static_cast<const Case*>(given)->call();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const Case* chosen = nullptr;
  for (const Case& each : cases)
    if (argc > 2 && std::strcmp(argv[2], each.name) == 0) chosen = &each;
  if (!chosen) return 2;
  int granted;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  out.resize(8000);
  in.resize(static_cast<std::size_t>(8000 * ranks));
  if (std::strcmp(chosen->name, "neighbor_alltoall") == 0) ring();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setguardsize(&attributes, 4 << 20);
  if (pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(std::atoi(argv[1])) * 1024) != 0) return 3;
  pthread_t thread;
  pthread_create(&thread, &attributes, &call_often, const_cast<Case*>(chosen));
  pthread_join(thread, nullptr);
  MPI_Finalize();
  return 0;
}
