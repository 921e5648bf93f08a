// SPDX-License-Identifier: Apache-2.0
#pragma once
// The collectives that may use the hierarchy, and three that always go to the MPI library, in all their forms: by the
// MPI_ names, which are intercepted, and by the PMPI_ names.
#include <mpi.h>

#include <string>
#include <vector>

namespace bestride::test {

enum class What {
  allgather,
  allgatherv,
  broadcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce_scatter,
  reduce_scatter_block,
  allreduce,
  reduce
};
inline constexpr What moving[] = {What::allgather, What::allgatherv, What::broadcast, What::gather,    What::gatherv,
                                  What::scatter,   What::scatterv,   What::alltoall,  What::alltoallv, What::alltoallw};
inline constexpr What reducing[] = {What::reduce_scatter, What::reduce_scatter_block, What::allreduce, What::reduce};
const char* name(What what);
inline bool gathers_to_root(What what) { return what == What::gather || what == What::gatherv; }
inline bool scatters(What what) { return what == What::scatter || what == What::scatterv; }
/// Each pair of ranks has a length of its own.
inline bool varies_by_pair(What what) { return what == What::alltoallv || what == What::alltoallw; }
inline bool from_all_to_all(What what) { return what == What::alltoall || varies_by_pair(what); }
/// A member knows only the sizes of its own blocks, so these collectives cannot use the hierarchy.
inline bool left_to_library(What what) {
  return what == What::gatherv || what == What::scatterv || varies_by_pair(what);
}
inline bool rooted(What what) {
  return what == What::broadcast || gathers_to_root(what) || scatters(what) || what == What::reduce;
}

enum class Wait { in_call, nonblocking, persistent };
struct Form {
  Wait wait = Wait::in_call;
  bool large = false;    ///< the _c function
  bool library = false;  ///< PMPI_: the MPI library's own
};
std::string name(Form form);
inline constexpr Wait every_wait[] = {Wait::in_call, Wait::nonblocking, Wait::persistent};

/// The arguments of a call; those that the collective does not have are ignored. Must not move or be freed until the
/// call completes, because MPI reads the arrays.
struct Arguments {
  const void* out = nullptr;
  MPI_Count out_count = 0;
  MPI_Datatype out_type = MPI_DATATYPE_NULL;
  void* in = nullptr;  ///< in a broadcast, the buffer
  MPI_Count in_count = 0;
  MPI_Datatype in_type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  /// The counts per rank of the side that has them; in an alltoallv or alltoallw, of the receiving side. `at` in
  /// extents, in an alltoallw in bytes.
  void give_counts(std::vector<int> counts, std::vector<int> at = {});
  /// The counts per rank of the sending side of an alltoallv or alltoallw.
  void give_out_counts(std::vector<int> counts, std::vector<int> at);
  std::vector<MPI_Datatype> out_types, in_types;  ///< of an alltoallw

  std::vector<int> counts, at, out_counts, out_at;
  std::vector<MPI_Count> large_counts, large_out_counts;
  std::vector<MPI_Aint> large_at, large_out_at;
};

/// Makes the call. `request`: its request, MPI_REQUEST_NULL in a blocking form, inactive in a persistent form.
int call(What what, Form form, const Arguments& arguments, MPI_Request* request);

/// Makes the call, starts it if it is persistent, and waits for it. Returns the first error.
int complete(What what, Form form, const Arguments& arguments);

}  // namespace bestride::test
