// SPDX-License-Identifier: Apache-2.0
#pragma once
// The collectives that may use the hierarchy, and three that are left to the MPI library, in all their forms: by the
// name that is intercepted and by the one that is not.
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
  reduce_scatter,
  reduce_scatter_block,
  allreduce,
  reduce
};
inline constexpr What moving[] = {What::allgather, What::allgatherv, What::broadcast, What::gather,   What::gatherv,
                                  What::scatter,   What::scatterv,   What::alltoall,  What::alltoallv};
inline constexpr What reducing[] = {What::reduce_scatter, What::reduce_scatter_block, What::allreduce, What::reduce};
const char* name(What what);
inline bool gathers_to_root(What what) { return what == What::gather || what == What::gatherv; }
inline bool scatters(What what) { return what == What::scatter || what == What::scatterv; }
inline bool from_all_to_all(What what) { return what == What::alltoall || what == What::alltoallv; }
/// Members know only their own sizes.
inline bool left_to_library(What what) {
  return what == What::gatherv || what == What::scatterv || what == What::alltoallv;
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

/// Of a call; what it has no use for is not looked at. Stays in place until the call has completed, for its arrays.
struct Arguments {
  const void* out = nullptr;
  MPI_Count out_count = 0;
  MPI_Datatype out_type = MPI_DATATYPE_NULL;
  void* in = nullptr;  ///< of a broadcast: the buffer
  MPI_Count in_count = 0;
  MPI_Datatype in_type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  /// Elements for each rank: of the side that has them, of an alltoallv the receiving one. `at` in extents.
  void give_counts(std::vector<int> counts, std::vector<int> at = {});
  /// Of an alltoallv, what is sent.
  void give_out_counts(std::vector<int> counts, std::vector<int> at);

  std::vector<int> counts, at, out_counts, out_at;
  std::vector<MPI_Count> large_counts, large_out_counts;
  std::vector<MPI_Aint> large_at, large_out_at;
};

/// Makes the call, as long as it takes. `request` is what it gives: MPI_REQUEST_NULL in a blocking form, not started in
/// a persistent one.
int call(What what, Form form, const Arguments& arguments, MPI_Request* request);

/// All of it: call, start, wait. What can fail, in this order, is returned.
int complete(What what, Form form, const Arguments& arguments);

}  // namespace bestride::test
