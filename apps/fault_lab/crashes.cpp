// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "faults.hpp"

namespace fault_lab {
namespace {

__attribute__((noinline)) void write_null() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

__attribute__((noinline)) void divide_by_zero() {
  volatile int zero = 0, quotient = 1;
  quotient = quotient / zero;
  std::raise(SIGFPE);  // not every processor traps
}

__attribute__((noinline)) void read_past_end() {
  const int file = memfd_create("fault_lab", MFD_CLOEXEC);
  const auto* const page = static_cast<const volatile char*>(mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0));
  static_cast<void>(page[0]);
}

/// Each call has a page of its own on the stack.
__attribute__((noinline)) int recurse(volatile char* from) {
  volatile char page[4096];
  page[0] = from[0];
  return page[0] == 0 ? recurse(page) + page[0] : 0;
}

/// No exception leaves this function, so it ends the program as an exception that nobody catches.
__attribute__((noinline)) void allocate_until_limit() noexcept {
  constexpr std::size_t part = 1 << 20, more = 32 * part;
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const rlim_t limit = rlim_t(pages) * rlim_t(sysconf(_SC_PAGESIZE)) + more;
  const rlimit bound{limit, limit};
  if (setrlimit(RLIMIT_AS, &bound) != 0) std::abort();
  // Bounded, in case the limit has no effect.
  for (std::size_t taken = 0; taken < 8 * more; taken += part) std::memset(new char[part], 1, part);
  std::abort();
}

void exceed_file_size() {
  constexpr rlim_t limit = 4096;
  const rlimit bound{limit, limit};
  setrlimit(RLIMIT_FSIZE, &bound);
  const int file = memfd_create("fault_lab", MFD_CLOEXEC);
  const Words data(2 * limit / sizeof(Words::value_type));
  for (int attempt = 0; attempt < 3; ++attempt)
    if (write(file, data.data(), 2 * limit) < 0) break;
}

__attribute__((noinline)) void write_to_full_disk() {
  const int file = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (file >= 0 && write(file, "checkpoint", 10) == 10) return;
  std::fprintf(stderr, "fault_lab: can't write the checkpoint: %s\n", std::strerror(errno));
  std::exit(ENOSPC);
}

}  // namespace

void crash(Job& job) {
  if (entry_of(job.plan.kind).verdict != Class::crash || !job.trigger(job.plan.kind)) return;
  volatile char start = 0;
  switch (job.plan.kind) {
    case Kind::sigkill: std::raise(SIGKILL); break;
    case Kind::sigsegv: write_null(); break;
    case Kind::sigabrt: std::abort();
    case Kind::reset_sigabrt: std::signal(SIGABRT, SIG_DFL); std::abort();
    case Kind::sigfpe: divide_by_zero(); break;
    case Kind::sigbus: read_past_end(); break;
    case Kind::sigill: __builtin_trap();
    case Kind::sigterm: std::raise(SIGTERM); break;
    case Kind::stack_overflow: recurse(&start); break;
    case Kind::out_of_memory: allocate_until_limit(); break;
    case Kind::file_size_limit: exceed_file_size(); break;
    case Kind::disk_full: write_to_full_disk(); break;
    case Kind::exit_0: _exit(0);
    case Kind::exit_3: std::exit(3);
    case Kind::mpi_abort: MPI_Abort(MPI_COMM_WORLD, 5); break;
    default: break;
  }
}

}  // namespace fault_lab
