/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The calls that the programs of this folder make, each exactly once unless noted otherwise. The counting backend and
 * the preloaded tool expand the list to their entries. The tests check the counts that they print at exit. */
#include <mpi.h>

#define COUNTED_CALLS                                                                                                  \
  COUNTED(MPI_Type_commit, (MPI_Datatype * type), (type))                                                              \
  COUNTED(MPI_Pack, (const void* in, int n, MPI_Datatype type, void* out, int size, int* at, MPI_Comm comm),           \
          (in, n, type, out, size, at, comm))                                                                          \
  COUNTED(MPI_Isend,                                                                                                   \
          (const void* buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request),      \
          (buffer, n, type, peer, tag, comm, request))                                                                 \
  COUNTED(MPI_Irecv, (void* buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request), \
          (buffer, n, type, peer, tag, comm, request))                                                                 \
  COUNTED(MPI_Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]), (n, requests, statuses))                \
  COUNTED(MPI_Sendrecv,                                                                                                \
          (const void* out, int n, MPI_Datatype type, int to, int tag, void* in, int in_n, MPI_Datatype in_type,       \
           int from, int in_tag, MPI_Comm comm, MPI_Status* status),                                                   \
          (out, n, type, to, tag, in, in_n, in_type, from, in_tag, comm, status))                                      \
  COUNTED(MPI_Type_free, (MPI_Datatype * type), (type))                                                                \
  COUNTED(MPI_Finalize, (void), ())
