// SPDX-License-Identifier: Apache-2.0
// interpose_shared_processor one|each: where two ranks wait in collectives through shared memory while they are on one
// processor, although they may use more, or each on its own. Counts the calls of futex(2) that wait: on one processor
// the waiting rank must sleep, because its partner needs the processor; on different ones it must not.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {
std::atomic<long>* sleeps = nullptr;  ///< of each rank, in memory that both share
std::atomic<int> own_rank{-1};
}  // namespace

// In place of libc's, for every object of the process.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  using Function = long(long, ...);
  static Function* const original = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "syscall"));
  va_list list;
  va_start(list, number);
  long given[6];
  for (long& each : given) each = va_arg(list, long);
  va_end(list);
  const int rank = own_rank.load(std::memory_order_relaxed);
  if (rank >= 0 && number == SYS_futex && (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) sleeps[rank].fetch_add(1);
  return original(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

namespace {

/// Memory of both ranks. No MPI window, because ranks with a window never sleep.
std::atomic<long>* shared_counters(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "/sleeps-%d", static_cast<int>(getpid()));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  int file = -1;
  if (rank == 0) file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (rank == 0 && (file < 0 || ftruncate(file, 4096) != 0)) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) file = shm_open(name, O_RDWR, 0600);
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(name);
  close(file);
  return static_cast<std::atomic<long>*>(memory);
}

std::vector<int> in(4096), out(8192);

void allreduce(MPI_Comm) { MPI_Allreduce(in.data(), out.data(), 4096, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }
void exchange(MPI_Comm ring) { MPI_Neighbor_alltoall(in.data(), 1024, MPI_INT, out.data(), 1024, MPI_INT, ring); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool one = std::strcmp(argv[1], "one") == 0;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // After MPI_Init, where the ranks had all processors.
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 2;
  if (CPU_COUNT(&allowed) < 2) {
    if (rank == 0) std::puts("skipped: needs two processors");
    MPI_Finalize();
    return 77;
  }
  int processor = 0;
  for (int left = one ? 0 : rank; !CPU_ISSET(processor, &allowed) || left-- > 0;) ++processor;
  CPU_SET(processor, &own);
  if (sched_setaffinity(0, sizeof own, &own) != 0) return 2;
  const int size = 2, periodic = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  sleeps = shared_counters(rank);
  int failures = 0;
  struct Case {
    const char* name;
    void (*call)(MPI_Comm);
  };
  for (const Case& each : {Case{"MPI_Allreduce", allreduce}, Case{"MPI_Neighbor_alltoall", exchange}}) {
    // Until the shared memory is in use, and each rank has told where it is.
    for (int call = 0; call < 20; ++call) each.call(ring);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      sleeps[1] = 0;
      own_rank = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // Rank 1 waits for rank 0, which comes once rank 1 sleeps, or after 20 ms if it must not sleep.
    if (rank == 0 && one)
      while (sleeps[1] == 0) usleep(100);
    else if (rank == 0)
      usleep(20'000);
    each.call(ring);
    own_rank = -1;
    if (rank == 1 && (sleeps[1] > 0) != one) {
      std::fprintf(stderr, "%ld sleeps in %s\n", sleeps[1].load(), each.name);
      ++failures;
    }
  }
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return failures;
}
