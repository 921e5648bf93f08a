// SPDX-License-Identifier: Apache-2.0
#include "round_trip.hpp"

#include <algorithm>
#include <atomic>

double round_trip(MPI_Comm comm) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (ranks < 2) return 0;
  struct alignas(128) Flag {
    std::atomic<int> number;
  };
  MPI_Win window;
  void* own = nullptr;
  MPI_Win_allocate_shared(rank == 0 ? 2 * sizeof(Flag) + alignof(Flag) : 0, 1, MPI_INFO_NULL, comm, &own, &window);
  MPI_Aint bytes;
  int unit;
  void* memory;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
  const auto address = reinterpret_cast<MPI_Aint>(memory);
  auto* flags = reinterpret_cast<Flag*>((address + 127) / 128 * 128 - address + static_cast<char*>(memory));
  if (rank == 0) flags[0].number = flags[1].number = 0;
  MPI_Barrier(comm);
  constexpr int times = 2000;
  double least = 1;
  for (int turn = 0; turn < 5; ++turn) {
    const double begin = MPI_Wtime();
    for (int i = turn * times + 1; i <= (turn + 1) * times && (rank == 0 || rank == ranks - 1); ++i) {
      if (rank == 0) flags[0].number.store(i, std::memory_order_release);
      while (flags[rank == 0].number.load(std::memory_order_acquire) < i) {
      }
      if (rank != 0) flags[1].number.store(i, std::memory_order_release);
    }
    least = std::min(least, (MPI_Wtime() - begin) / times);
  }
  MPI_Bcast(&least, 1, MPI_DOUBLE, 0, comm);
  MPI_Win_free(&window);
  return least;
}
