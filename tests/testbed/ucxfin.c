// SPDX-License-Identifier: Apache-2.0
// Test bed only: lets programs of MPICH 4.0.x (ch4:ucx) end over TCP.
//
// There MPI_Finalize first flushes and closes all UCX endpoints, then enters a PMI barrier that blocks without
// progressing UCX. A TCP endpoint's flush needs an answer from the peer, so a rank that reaches the barrier before its
// peer's flush arrives leaves that peer waiting for ever (mended upstream by pmodels/mpich PR 6596 and later, MPICH
// >= 4.2). On a busy machine it hit 48 of 100 runs of 8 ranks.
//
// So: a barrier while everybody still progresses, then no flush at all. It is preloaded after any library under test
// (run.sh does that), and takes MPI_Finalize from the program, or PMPI_Finalize from the library under test.
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

// 0 is UCS_OK: done, nothing pending; the endpoints go with the worker.
void* ucp_disconnect_nb(void* ep) {
  (void)ep;
  return 0;
}
