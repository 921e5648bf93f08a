/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded after the library under test: counts the collectives that reach the MPI library. */
#include <mpi.h>
#include <stdatomic.h>

atomic_int hierarchical_call_counter_calls;

#define LIST(...) __VA_ARGS__
#define ONE(Name, parameters, arguments) \
  int MPI_##Name(LIST parameters) {      \
    ++hierarchical_call_counter_calls;   \
    return PMPI_##Name(LIST arguments);  \
  }
#define FORMS(Name, Iname, c, parameters, arguments)                                                      \
  ONE(Name##c, (LIST parameters, MPI_Comm comm), (LIST arguments, comm))                                  \
  ONE(Iname##c, (LIST parameters, MPI_Comm comm, MPI_Request * request), (LIST arguments, comm, request)) \
  ONE(Name##_init##c, (LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request),             \
      (LIST arguments, comm, info, request))
/* `parameters`: a macro whose arguments are the types of counts and displacements. */
#define BOTH(Name, Iname, parameters, arguments)          \
  FORMS(Name, Iname, , (parameters(int, int)), arguments) \
  FORMS(Name, Iname, _c, (parameters(MPI_Count, MPI_Aint)), arguments)

#define OUT(Count) const void *out, Count out_count, MPI_Datatype out_type
#define IN(Count) void *in, Count in_count, MPI_Datatype in_type
#define MOVED(Count, At) OUT(Count), IN(Count)
#define MOVED_V(Count, At) OUT(Count), void *in, const Count *in_counts, const At *at, MPI_Datatype in_type
#define MOVED_VV(Count, At)                                                                                            \
  const void *out, const Count *out_counts, const At *out_at, MPI_Datatype out_type, void *in, const Count *in_counts, \
      const At *at, MPI_Datatype in_type
#define MOVED_WW(Count, At)                                                                            \
  const void *out, const Count *out_counts, const At *out_at, const MPI_Datatype *out_types, void *in, \
      const Count *in_counts, const At *at, const MPI_Datatype *in_types
#define ROOTED(Count, At) OUT(Count), IN(Count), int root
#define GATHERED_V(Count, At) MOVED_V(Count, At), int root
#define SCATTERED_V(Count, At) \
  const void *out, const Count *out_counts, const At *at, MPI_Datatype out_type, IN(Count), int root
#define CAST(Count, At) void *in, Count in_count, MPI_Datatype in_type, int root
#define REDUCED(Count, At) const void *out, IN(Count), MPI_Op op
#define REDUCED_V(Count, At) const void *out, void *in, const Count *in_counts, MPI_Datatype in_type, MPI_Op op
#define REDUCED_ROOTED(Count, At) const void *out, IN(Count), MPI_Op op, int root

BOTH(Allgather, Iallgather, MOVED, (out, out_count, out_type, in, in_count, in_type))
BOTH(Allgatherv, Iallgatherv, MOVED_V, (out, out_count, out_type, in, in_counts, at, in_type))
BOTH(Bcast, Ibcast, CAST, (in, in_count, in_type, root))
BOTH(Gather, Igather, ROOTED, (out, out_count, out_type, in, in_count, in_type, root))
BOTH(Gatherv, Igatherv, GATHERED_V, (out, out_count, out_type, in, in_counts, at, in_type, root))
BOTH(Scatter, Iscatter, ROOTED, (out, out_count, out_type, in, in_count, in_type, root))
BOTH(Scatterv, Iscatterv, SCATTERED_V, (out, out_counts, at, out_type, in, in_count, in_type, root))
BOTH(Alltoall, Ialltoall, MOVED, (out, out_count, out_type, in, in_count, in_type))
BOTH(Alltoallv, Ialltoallv, MOVED_VV, (out, out_counts, out_at, out_type, in, in_counts, at, in_type))
BOTH(Alltoallw, Ialltoallw, MOVED_WW, (out, out_counts, out_at, out_types, in, in_counts, at, in_types))
BOTH(Reduce_scatter, Ireduce_scatter, REDUCED_V, (out, in, in_counts, in_type, op))
BOTH(Reduce_scatter_block, Ireduce_scatter_block, REDUCED, (out, in, in_count, in_type, op))
BOTH(Allreduce, Iallreduce, REDUCED, (out, in, in_count, in_type, op))
BOTH(Reduce, Ireduce, REDUCED_ROOTED, (out, in, in_count, in_type, op, root))

BOTH(Neighbor_allgather, Ineighbor_allgather, MOVED, (out, out_count, out_type, in, in_count, in_type))
BOTH(Neighbor_allgatherv, Ineighbor_allgatherv, MOVED_V, (out, out_count, out_type, in, in_counts, at, in_type))
BOTH(Neighbor_alltoall, Ineighbor_alltoall, MOVED, (out, out_count, out_type, in, in_count, in_type))
BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, MOVED_VV, (out, out_counts, out_at, out_type, in, in_counts, at, in_type))
FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, , (MOVED_WW(int, MPI_Aint)),
      (out, out_counts, out_at, out_types, in, in_counts, at, in_types))
FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, _c, (MOVED_WW(MPI_Count, MPI_Aint)),
      (out, out_counts, out_at, out_types, in, in_counts, at, in_types))
