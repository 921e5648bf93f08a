/* SPDX-License-Identifier: Apache-2.0 */
/* A profiling tool, preloaded before or after the library. It passes calls on by their PMPI_ names; with -DREPLACES it
 * also makes other calls in place of some, and calls of its own. */
#include <mpi.h>
#include <stdlib.h>

#define TOOL __attribute__((visibility("default")))

#define PASSED(name, parameters, arguments) \
  TOOL int MPI_##name parameters { return PMPI_##name arguments; }

PASSED(Init, (int* argc, char*** argv), (argc, argv))
PASSED(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided))
PASSED(Finalize, (void), ())
PASSED(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* made), (comm, info, made))
PASSED(Comm_idup, (MPI_Comm comm, MPI_Comm* made, MPI_Request* request), (comm, made, request))
PASSED(Comm_set_info, (MPI_Comm comm, MPI_Info info), (comm, info))
PASSED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
PASSED(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm* made),
       (comm, kind, key, info, made))
PASSED(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made))
PASSED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made))
PASSED(Cart_create, (MPI_Comm comm, int n, const int* sizes, const int* periods, int reorder, MPI_Comm* made),
       (comm, n, sizes, periods, reorder, made))
PASSED(Comm_free, (MPI_Comm * comm), (comm))
PASSED(Type_commit, (MPI_Datatype * type), (type))
PASSED(Type_dup, (MPI_Datatype type, MPI_Datatype* copy), (type, copy))
PASSED(Type_free, (MPI_Datatype * type), (type))
PASSED(Type_get_contents,
       (MPI_Datatype type, int most_integers, int most_addresses, int most_types, int* integers, MPI_Aint* addresses,
        MPI_Datatype* types),
       (type, most_integers, most_addresses, most_types, integers, addresses, types))
PASSED(Win_allocate, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* memory, MPI_Win* window),
       (bytes, unit, info, comm, memory, window))
PASSED(Win_free, (MPI_Win * window), (window))
PASSED(Startall, (int count, MPI_Request* requests), (count, requests))
PASSED(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
PASSED(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), (count, requests, statuses))
PASSED(Recv, (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
       (buffer, count, type, from, tag, comm, status))
#if MPI_VERSION >= 4
PASSED(Session_init, (MPI_Info info, MPI_Errhandler handler, MPI_Session* session), (info, handler, session))
#endif

#ifndef REPLACES
PASSED(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
PASSED(Start, (MPI_Request * request), (request))
PASSED(Barrier, (MPI_Comm comm), (comm))
PASSED(Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm))
PASSED(Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
       (in, out, count, type, op, comm))
#else
/* A communicator for the tool itself, on which it communicates. */
TOOL int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  MPI_Comm own;
  int i, one = 1, ranks = 0, all = 0;
  const int error = PMPI_Comm_dup(comm, made);
  if (error != MPI_SUCCESS) return error;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_dup(comm, &own);
  for (i = 0; i < 5; ++i) PMPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, own);
  if (all != ranks) abort();
  return PMPI_Comm_free(&own);
}
TOOL int MPI_Start(MPI_Request* request) { return PMPI_Startall(1, request); }
TOOL int MPI_Barrier(MPI_Comm comm) {
  int one = 1, all;
  return PMPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
}
TOOL int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int rank, ranks, other;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  if (rank != root) return PMPI_Recv(buffer, count, type, root, 30000, comm, MPI_STATUS_IGNORE);
  for (other = 0; other < ranks; ++other)
    if (other != root) PMPI_Send(buffer, count, type, other, 30000, comm);
  return MPI_SUCCESS;
}
TOOL int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  if (in == MPI_IN_PLACE && rank != 0)
    PMPI_Reduce(out, NULL, count, type, op, 0, comm);
  else
    PMPI_Reduce(in, out, count, type, op, 0, comm);
  return PMPI_Bcast(out, count, type, 0, comm);
}
#endif
