// SPDX-License-Identifier: Apache-2.0
// Programs that track accesses to their pages: a handler of SIGSEGV makes a protected page accessible when it is
// touched. Whatever thread touches it must let the handler run. Messages are short, because MPICH 4.0.2 over UCX aborts
// if the kernel can't copy a long one to a protected page.
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// A buffer of `ints` integers on pages of its own.
class TrackedPages {
 public:
  explicit TrackedPages(int ints) : bytes_((static_cast<std::size_t>(ints) * sizeof(int) + 4095) / 4096 * 4096) {
    data_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~TrackedPages() { munmap(data_, bytes_); }
  TrackedPages(const TrackedPages&) = delete;
  TrackedPages& operator=(const TrackedPages&) = delete;
  int* data() const { return reinterpret_cast<int*>(data_); }
  void protect(int protection) const { mprotect(data_, bytes_, protection); }
  bool holds(const char* address) const { return address >= data_ && address < data_ + bytes_; }

 private:
  char* data_;
  std::size_t bytes_;
};

std::atomic<const TrackedPages*> tracked[2];
std::atomic<int> faults;

void make_accessible(int, siginfo_t* info, void*) {
  auto* const address = static_cast<char*>(info->si_addr);
  for (const auto& pages : tracked)
    if (pages.load() && pages.load()->holds(address)) {
      ++faults;
      const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / 4096 * 4096;
      mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE);
      return;
    }
  _exit(11);
}

/// `start` begins or makes a collective in which each rank sends `count` integers, rank * 1000000 + i, to each. With
/// `pause` the rank computes before it waits, so the progress thread moves the data.
void check(int count, int ranks_received, bool pause, const std::function<MPI_Request(const int* out, int* in)>& start,
           const std::function<int(int block)>& source) {
  watch_for_hang();
  struct sigaction handler = {}, before;
  handler.sa_sigaction = &make_accessible;
  handler.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &handler, &before);
  const TrackedPages out(count), in(count * ranks_received);
  tracked[0] = &out;
  tracked[1] = &in;
  for (int round = 0; round < 12; ++round) {
    out.protect(PROT_READ | PROT_WRITE);
    in.protect(PROT_READ | PROT_WRITE);
    for (int i = 0; i < count; ++i) out.data()[i] = world_rank() * 1000000 + round + i;
    for (int i = 0; i < count * ranks_received; ++i) in.data()[i] = -1;
    faults = 0;
    round % 2 == 0 ? in.protect(PROT_READ) : out.protect(PROT_NONE);
    MPI_Request request = start(out.data(), in.data());
    if (pause) usleep(4000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(faults > 0);
    for (int block = 0; block < ranks_received; ++block)
      for (int i = 0; i < count; i += 100)
        CHECK_EQUAL(source(block) * 1000000 + round + i, in.data()[block * count + i]);
  }
  tracked[0] = tracked[1] = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
}

int this_block(int block) { return block; }

MPI_Comm ring() {
  const int ranks = world_size(), periodic = 1;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &comm);
  return comm;
}
int neighbor(int block) { return (world_rank() + (block == 0 ? world_size() - 1 : 1)) % world_size(); }

void check_neighbors(int count, bool nonblocking) {
  MPI_Comm comm = ring();
  check(
      count, 2, nonblocking,
      [=](const int* out, int* in) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (nonblocking)
          MPI_Ineighbor_allgather(out, count, MPI_INT, in, count, MPI_INT, comm, &request);
        else
          MPI_Neighbor_allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
        return request;
      },
      &neighbor);
  MPI_Comm_free(&comm);
}

MPI_CASE(allgather) {
  check(
      1500, world_size(), false,
      [](const int* out, int* in) {
        MPI_Allgather(out, 1500, MPI_INT, in, 1500, MPI_INT, MPI_COMM_WORLD);
        return MPI_REQUEST_NULL;
      },
      &this_block);
}
MPI_CASE(iallgather_while_computing) {
  check(
      500, world_size(), true,
      [](const int* out, int* in) {
        MPI_Request request;
        MPI_Iallgather(out, 500, MPI_INT, in, 500, MPI_INT, MPI_COMM_WORLD, &request);
        return request;
      },
      &this_block);
}
MPI_CASE(iallreduce_while_computing) {
  check(
      6000, 1, true,
      [](const int* out, int* in) {
        MPI_Request request;
        MPI_Iallreduce(out, in, 6000, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
        return request;
      },
      [](int) { return world_size() - 1; });
}
MPI_CASE(neighbor_messages) { check_neighbors(500, false); }
MPI_CASE(neighbor_messages_while_computing) { check_neighbors(500, true); }

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv); }
