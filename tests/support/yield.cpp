// SPDX-License-Identifier: Apache-2.0
// With more ranks than cores, MPICH spins without yielding, so each blocking call takes whole time slices (8 ms for a
// barrier of four ranks on two cores; 25 us with this file). This ucp_worker_progress replaces that of UCX and yields
// if there was no progress. If there are not more ranks than cores, it never yields unless TEST_YIELD is set.
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

bool oversubscribed() {
  if (std::getenv("TEST_YIELD")) return true;
  const char* ranks = std::getenv("MPI_LOCALNRANKS");  // set by Hydra: the number of ranks on this host
  cpu_set_t cores;
  return ranks && sched_getaffinity(0, sizeof cores, &cores) == 0 && std::atoi(ranks) > CPU_COUNT(&cores);
}

/// Sets short time slices. Kernels before 6.12 refuse them.
void use_short_slices() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline, period;
  } attributes{sizeof attributes, SCHED_OTHER, 0, 0, 0, 100000, 0, 0};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

const bool yields = [] {
  const bool more_ranks_than_cores = oversubscribed();
  if (more_ranks_than_cores) use_short_slices();
  return more_ranks_than_cores;
}();

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto real = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned moved = real(worker);
  if (yields && moved == 0) sched_yield();
  return moved;
}
