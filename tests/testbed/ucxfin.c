// SPDX-License-Identifier: Apache-2.0
// Test bed only: prevents a hang of MPICH 4.0.x (ch4:ucx) in MPI_Finalize over TCP.
//
// MPI_Finalize first flushes and closes all UCX endpoints, then enters a PMI barrier that blocks without progressing
// UCX. The flush of a TCP endpoint needs a reply from the peer, so if a rank reaches the barrier before its peer's
// flush arrives, that peer waits forever (fixed upstream by pmodels/mpich PR 6596 and later, MPICH >= 4.2). On a busy
// machine 48 of 100 runs with 8 ranks hung.
//
// This library makes a barrier while all ranks still progress UCX, and then skips the flush. run.sh preloads it after
// any library under test. It intercepts MPI_Finalize of the program, or PMPI_Finalize of the library under test.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

static int finalize(void) {
  int (*real)(void) = (int (*)(void))dlsym(RTLD_NEXT, "PMPI_Finalize");
  PMPI_Barrier(MPI_COMM_WORLD);
  return real();
}
int MPI_Finalize(void) { return finalize(); }
int PMPI_Finalize(void) { return finalize(); }

// 0 is UCS_OK: complete, nothing is pending. The endpoints are destroyed with the worker.
void* ucp_disconnect_nb(void* ep) {
  (void)ep;
  return 0;
}
