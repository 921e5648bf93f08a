// SPDX-License-Identifier: Apache-2.0
#pragma once
// For programs that measure the MPI library or compare results with it. Include it after <mpi.h>. The preload library
// intercepts collectives under their MPI_ and their PMPI_ names; with this header the PMPI_ names of collectives refer
// to the MPI library's own functions. Only for libraries of the MPICH family.
#include <dlfcn.h>

namespace bestride {

/// The MPI library's own symbol. Without the preload library: the symbol that the linker would bind.
inline void* library_symbol(const char* name) noexcept {
  static void* const library = [] {
    Dl_info info;
    void* known = dlsym(RTLD_DEFAULT, "MPIR_Dup_fn");
    return known && dladdr(known, &info) ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : nullptr;
  }();
  return dlsym(library ? library : RTLD_DEFAULT, name);
}
template <class Function>
Function library_function(const char* name) noexcept {
  return reinterpret_cast<Function>(library_symbol(name));
}

}  // namespace bestride

// The preprocessor does not expand the macro's own name in its replacement.
#define PMPI_Gather (*::bestride::library_function<decltype(&PMPI_Gather)>("PMPI_Gather"))
#define PMPI_Igather (*::bestride::library_function<decltype(&PMPI_Igather)>("PMPI_Igather"))
#define PMPI_Gatherv (*::bestride::library_function<decltype(&PMPI_Gatherv)>("PMPI_Gatherv"))
#define PMPI_Igatherv (*::bestride::library_function<decltype(&PMPI_Igatherv)>("PMPI_Igatherv"))
#define PMPI_Scatter (*::bestride::library_function<decltype(&PMPI_Scatter)>("PMPI_Scatter"))
#define PMPI_Iscatter (*::bestride::library_function<decltype(&PMPI_Iscatter)>("PMPI_Iscatter"))
#define PMPI_Scatterv (*::bestride::library_function<decltype(&PMPI_Scatterv)>("PMPI_Scatterv"))
#define PMPI_Iscatterv (*::bestride::library_function<decltype(&PMPI_Iscatterv)>("PMPI_Iscatterv"))
#define PMPI_Allgather (*::bestride::library_function<decltype(&PMPI_Allgather)>("PMPI_Allgather"))
#define PMPI_Iallgather (*::bestride::library_function<decltype(&PMPI_Iallgather)>("PMPI_Iallgather"))
#define PMPI_Allgatherv (*::bestride::library_function<decltype(&PMPI_Allgatherv)>("PMPI_Allgatherv"))
#define PMPI_Iallgatherv (*::bestride::library_function<decltype(&PMPI_Iallgatherv)>("PMPI_Iallgatherv"))
#define PMPI_Alltoall (*::bestride::library_function<decltype(&PMPI_Alltoall)>("PMPI_Alltoall"))
#define PMPI_Ialltoall (*::bestride::library_function<decltype(&PMPI_Ialltoall)>("PMPI_Ialltoall"))
#define PMPI_Alltoallv (*::bestride::library_function<decltype(&PMPI_Alltoallv)>("PMPI_Alltoallv"))
#define PMPI_Ialltoallv (*::bestride::library_function<decltype(&PMPI_Ialltoallv)>("PMPI_Ialltoallv"))
#define PMPI_Bcast (*::bestride::library_function<decltype(&PMPI_Bcast)>("PMPI_Bcast"))
#define PMPI_Ibcast (*::bestride::library_function<decltype(&PMPI_Ibcast)>("PMPI_Ibcast"))
#define PMPI_Reduce (*::bestride::library_function<decltype(&PMPI_Reduce)>("PMPI_Reduce"))
#define PMPI_Ireduce (*::bestride::library_function<decltype(&PMPI_Ireduce)>("PMPI_Ireduce"))
#define PMPI_Allreduce (*::bestride::library_function<decltype(&PMPI_Allreduce)>("PMPI_Allreduce"))
#define PMPI_Iallreduce (*::bestride::library_function<decltype(&PMPI_Iallreduce)>("PMPI_Iallreduce"))
#define PMPI_Reduce_scatter (*::bestride::library_function<decltype(&PMPI_Reduce_scatter)>("PMPI_Reduce_scatter"))
#define PMPI_Ireduce_scatter (*::bestride::library_function<decltype(&PMPI_Ireduce_scatter)>("PMPI_Ireduce_scatter"))
#define PMPI_Reduce_scatter_block \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_block)>("PMPI_Reduce_scatter_block"))
#define PMPI_Ireduce_scatter_block \
  (*::bestride::library_function<decltype(&PMPI_Ireduce_scatter_block)>("PMPI_Ireduce_scatter_block"))
#define PMPI_Scan (*::bestride::library_function<decltype(&PMPI_Scan)>("PMPI_Scan"))
#define PMPI_Iscan (*::bestride::library_function<decltype(&PMPI_Iscan)>("PMPI_Iscan"))
#define PMPI_Exscan (*::bestride::library_function<decltype(&PMPI_Exscan)>("PMPI_Exscan"))
#define PMPI_Iexscan (*::bestride::library_function<decltype(&PMPI_Iexscan)>("PMPI_Iexscan"))
#if MPI_VERSION >= 4
#define PMPI_Gather_c (*::bestride::library_function<decltype(&PMPI_Gather_c)>("PMPI_Gather_c"))
#define PMPI_Igather_c (*::bestride::library_function<decltype(&PMPI_Igather_c)>("PMPI_Igather_c"))
#define PMPI_Gather_init (*::bestride::library_function<decltype(&PMPI_Gather_init)>("PMPI_Gather_init"))
#define PMPI_Gather_init_c (*::bestride::library_function<decltype(&PMPI_Gather_init_c)>("PMPI_Gather_init_c"))
#define PMPI_Gatherv_c (*::bestride::library_function<decltype(&PMPI_Gatherv_c)>("PMPI_Gatherv_c"))
#define PMPI_Igatherv_c (*::bestride::library_function<decltype(&PMPI_Igatherv_c)>("PMPI_Igatherv_c"))
#define PMPI_Gatherv_init (*::bestride::library_function<decltype(&PMPI_Gatherv_init)>("PMPI_Gatherv_init"))
#define PMPI_Gatherv_init_c (*::bestride::library_function<decltype(&PMPI_Gatherv_init_c)>("PMPI_Gatherv_init_c"))
#define PMPI_Scatter_c (*::bestride::library_function<decltype(&PMPI_Scatter_c)>("PMPI_Scatter_c"))
#define PMPI_Iscatter_c (*::bestride::library_function<decltype(&PMPI_Iscatter_c)>("PMPI_Iscatter_c"))
#define PMPI_Scatter_init (*::bestride::library_function<decltype(&PMPI_Scatter_init)>("PMPI_Scatter_init"))
#define PMPI_Scatter_init_c (*::bestride::library_function<decltype(&PMPI_Scatter_init_c)>("PMPI_Scatter_init_c"))
#define PMPI_Scatterv_c (*::bestride::library_function<decltype(&PMPI_Scatterv_c)>("PMPI_Scatterv_c"))
#define PMPI_Iscatterv_c (*::bestride::library_function<decltype(&PMPI_Iscatterv_c)>("PMPI_Iscatterv_c"))
#define PMPI_Scatterv_init (*::bestride::library_function<decltype(&PMPI_Scatterv_init)>("PMPI_Scatterv_init"))
#define PMPI_Scatterv_init_c (*::bestride::library_function<decltype(&PMPI_Scatterv_init_c)>("PMPI_Scatterv_init_c"))
#define PMPI_Allgather_c (*::bestride::library_function<decltype(&PMPI_Allgather_c)>("PMPI_Allgather_c"))
#define PMPI_Iallgather_c (*::bestride::library_function<decltype(&PMPI_Iallgather_c)>("PMPI_Iallgather_c"))
#define PMPI_Allgather_init (*::bestride::library_function<decltype(&PMPI_Allgather_init)>("PMPI_Allgather_init"))
#define PMPI_Allgather_init_c (*::bestride::library_function<decltype(&PMPI_Allgather_init_c)>("PMPI_Allgather_init_c"))
#define PMPI_Allgatherv_c (*::bestride::library_function<decltype(&PMPI_Allgatherv_c)>("PMPI_Allgatherv_c"))
#define PMPI_Iallgatherv_c (*::bestride::library_function<decltype(&PMPI_Iallgatherv_c)>("PMPI_Iallgatherv_c"))
#define PMPI_Allgatherv_init (*::bestride::library_function<decltype(&PMPI_Allgatherv_init)>("PMPI_Allgatherv_init"))
#define PMPI_Allgatherv_init_c \
  (*::bestride::library_function<decltype(&PMPI_Allgatherv_init_c)>("PMPI_Allgatherv_init_c"))
#define PMPI_Alltoall_c (*::bestride::library_function<decltype(&PMPI_Alltoall_c)>("PMPI_Alltoall_c"))
#define PMPI_Ialltoall_c (*::bestride::library_function<decltype(&PMPI_Ialltoall_c)>("PMPI_Ialltoall_c"))
#define PMPI_Alltoall_init (*::bestride::library_function<decltype(&PMPI_Alltoall_init)>("PMPI_Alltoall_init"))
#define PMPI_Alltoall_init_c (*::bestride::library_function<decltype(&PMPI_Alltoall_init_c)>("PMPI_Alltoall_init_c"))
#define PMPI_Alltoallv_c (*::bestride::library_function<decltype(&PMPI_Alltoallv_c)>("PMPI_Alltoallv_c"))
#define PMPI_Ialltoallv_c (*::bestride::library_function<decltype(&PMPI_Ialltoallv_c)>("PMPI_Ialltoallv_c"))
#define PMPI_Alltoallv_init (*::bestride::library_function<decltype(&PMPI_Alltoallv_init)>("PMPI_Alltoallv_init"))
#define PMPI_Alltoallv_init_c (*::bestride::library_function<decltype(&PMPI_Alltoallv_init_c)>("PMPI_Alltoallv_init_c"))
#define PMPI_Bcast_c (*::bestride::library_function<decltype(&PMPI_Bcast_c)>("PMPI_Bcast_c"))
#define PMPI_Ibcast_c (*::bestride::library_function<decltype(&PMPI_Ibcast_c)>("PMPI_Ibcast_c"))
#define PMPI_Bcast_init (*::bestride::library_function<decltype(&PMPI_Bcast_init)>("PMPI_Bcast_init"))
#define PMPI_Bcast_init_c (*::bestride::library_function<decltype(&PMPI_Bcast_init_c)>("PMPI_Bcast_init_c"))
#define PMPI_Reduce_c (*::bestride::library_function<decltype(&PMPI_Reduce_c)>("PMPI_Reduce_c"))
#define PMPI_Ireduce_c (*::bestride::library_function<decltype(&PMPI_Ireduce_c)>("PMPI_Ireduce_c"))
#define PMPI_Reduce_init (*::bestride::library_function<decltype(&PMPI_Reduce_init)>("PMPI_Reduce_init"))
#define PMPI_Reduce_init_c (*::bestride::library_function<decltype(&PMPI_Reduce_init_c)>("PMPI_Reduce_init_c"))
#define PMPI_Allreduce_c (*::bestride::library_function<decltype(&PMPI_Allreduce_c)>("PMPI_Allreduce_c"))
#define PMPI_Iallreduce_c (*::bestride::library_function<decltype(&PMPI_Iallreduce_c)>("PMPI_Iallreduce_c"))
#define PMPI_Allreduce_init (*::bestride::library_function<decltype(&PMPI_Allreduce_init)>("PMPI_Allreduce_init"))
#define PMPI_Allreduce_init_c (*::bestride::library_function<decltype(&PMPI_Allreduce_init_c)>("PMPI_Allreduce_init_c"))
#define PMPI_Reduce_scatter_c (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_c)>("PMPI_Reduce_scatter_c"))
#define PMPI_Ireduce_scatter_c \
  (*::bestride::library_function<decltype(&PMPI_Ireduce_scatter_c)>("PMPI_Ireduce_scatter_c"))
#define PMPI_Reduce_scatter_init \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_init)>("PMPI_Reduce_scatter_init"))
#define PMPI_Reduce_scatter_init_c \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_init_c)>("PMPI_Reduce_scatter_init_c"))
#define PMPI_Reduce_scatter_block_c \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_block_c)>("PMPI_Reduce_scatter_block_c"))
#define PMPI_Ireduce_scatter_block_c \
  (*::bestride::library_function<decltype(&PMPI_Ireduce_scatter_block_c)>("PMPI_Ireduce_scatter_block_c"))
#define PMPI_Reduce_scatter_block_init \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_block_init)>("PMPI_Reduce_scatter_block_init"))
#define PMPI_Reduce_scatter_block_init_c \
  (*::bestride::library_function<decltype(&PMPI_Reduce_scatter_block_init_c)>("PMPI_Reduce_scatter_block_init_c"))
#define PMPI_Scan_c (*::bestride::library_function<decltype(&PMPI_Scan_c)>("PMPI_Scan_c"))
#define PMPI_Iscan_c (*::bestride::library_function<decltype(&PMPI_Iscan_c)>("PMPI_Iscan_c"))
#define PMPI_Scan_init (*::bestride::library_function<decltype(&PMPI_Scan_init)>("PMPI_Scan_init"))
#define PMPI_Scan_init_c (*::bestride::library_function<decltype(&PMPI_Scan_init_c)>("PMPI_Scan_init_c"))
#define PMPI_Exscan_c (*::bestride::library_function<decltype(&PMPI_Exscan_c)>("PMPI_Exscan_c"))
#define PMPI_Iexscan_c (*::bestride::library_function<decltype(&PMPI_Iexscan_c)>("PMPI_Iexscan_c"))
#define PMPI_Exscan_init (*::bestride::library_function<decltype(&PMPI_Exscan_init)>("PMPI_Exscan_init"))
#define PMPI_Exscan_init_c (*::bestride::library_function<decltype(&PMPI_Exscan_init_c)>("PMPI_Exscan_init_c"))
#endif
