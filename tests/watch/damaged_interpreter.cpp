// SPDX-License-Identifier: Apache-2.0
// Exports the functions by which CPython writes its frames; one of them faults. Rank 1 aborts.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED void* PyGILState_GetThisThreadState() {
  static int thread;
  return &thread;
}

EXPORTED void _Py_DumpTraceback(int file, void* thread) {
  const char text[] = "Stack (most recent call first):\n  File \"solver.py\", line 12 in load\n  File \"";
  if (write(file, text, sizeof text - 1) < 0) return;
  std::memset(thread, 1, sizeof(int));
  int* volatile nowhere = reinterpret_cast<int*>(16);
  *nowhere = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) std::abort();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
