// SPDX-License-Identifier: Apache-2.0
// interpose_windows: creates a window by each function, by both names, and frees all but the first two. With
// BESTRIDE_LOG=info the library prints at MPI_Finalize how many windows it has counted. A call that fails is not
// counted.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  static char memory[64];
  void* base = nullptr;
  std::vector<MPI_Win> windows;
  const auto keep = [&windows](int error, MPI_Win window) {
    if (error == MPI_SUCCESS) windows.push_back(window);
  };
  MPI_Win window = MPI_WIN_NULL;
  keep(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), window);
  keep(PMPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), window);
  keep(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), window);
  keep(PMPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), window);
  keep(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window), window);
#if MPI_VERSION >= 4
  keep(MPI_Win_create_c(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), window);
  keep(PMPI_Win_allocate_c(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), window);
  keep(MPI_Win_allocate_shared_c(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), window);
  constexpr std::size_t made = 8;
#else
  constexpr std::size_t made = 5;
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool refused = MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) != MPI_SUCCESS;
  for (std::size_t i = 2; i < windows.size(); ++i) i % 2 ? MPI_Win_free(&windows[i]) : PMPI_Win_free(&windows[i]);
  if (windows.size() != made || !refused) {
    std::fprintf(stderr, "%zu windows instead of %zu; a bad size was %s\n", windows.size(), made,
                 refused ? "refused" : "accepted");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
