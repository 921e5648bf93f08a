/* SPDX-License-Identifier: Apache-2.0 */
/* A tool that gives the program another MPI_COMM_WORLD, with the ranks in reverse order, wherever it sees the real one.
 */
#include <mpi.h>

#define TOOL __attribute__((visibility("default")))

static MPI_Comm world = MPI_COMM_NULL;

static MPI_Comm of(MPI_Comm comm) { return comm == MPI_COMM_WORLD && world != MPI_COMM_NULL ? world : comm; }

static int begin(int error) {
  int rank;
  if (error != MPI_SUCCESS) return error;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return PMPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &world);
}

TOOL int MPI_Init(int* argc, char*** argv) { return begin(PMPI_Init(argc, argv)); }
TOOL int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return begin(PMPI_Init_thread(argc, argv, required, provided));
}
TOOL int MPI_Comm_rank(MPI_Comm comm, int* rank) { return PMPI_Comm_rank(of(comm), rank); }
TOOL int MPI_Allgather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,
                       MPI_Datatype in_type, MPI_Comm comm) {
  return PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, of(comm));
}
TOOL int MPI_Iallgather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,
                        MPI_Datatype in_type, MPI_Comm comm, MPI_Request* request) {
  return PMPI_Iallgather(out, out_count, out_type, in, in_count, in_type, of(comm), request);
}
TOOL int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(buffer, count, type, root, of(comm));
}
TOOL int MPI_Finalize(void) {
  PMPI_Comm_free(&world);
  return PMPI_Finalize();
}
