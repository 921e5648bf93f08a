// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/tool_behind.hpp"

#include <dlfcn.h>

#include "interpose/mpi/services.hpp"

namespace bestride::inline interpose {

// What the application would reach is compared with the definition of the same name in the MPI library. If the MPI_
// functions are in another object than the PMPI_ ones, the library has no such definition and nothing is found.
const char* tool_behind() noexcept {
  static constexpr const char* names[] = {
      "MPI_Allgather",  "MPI_Allgatherv",     "MPI_Allreduce", "MPI_Alltoall", "MPI_Alltoallv",
      "MPI_Alltoallw",  "MPI_Barrier",        "MPI_Bcast",     "MPI_Gather",   "MPI_Gatherv",
      "MPI_Reduce",     "MPI_Reduce_scatter", "MPI_Scatter",   "MPI_Scatterv", "MPI_Reduce_scatter_block",
      "MPI_Iallgather", "MPI_Iallreduce",     "MPI_Ialltoall", "MPI_Ibcast",   "MPI_Neighbor_alltoall"};
  for (const char* const name : names) {
    const void* const next = preload_services->next_symbol(name);
    const void* const own = preload_services->library_symbol(name);
    Dl_info of_next, of_own;
    if (next && own && next != own && dladdr(next, &of_next) && dladdr(own, &of_own) &&
        of_next.dli_fbase != of_own.dli_fbase)
      return of_next.dli_fname;
  }
  return nullptr;
}

}  // namespace bestride::inline interpose
