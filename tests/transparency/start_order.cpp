// SPDX-License-Identifier: Apache-2.0
// Persistent collectives match in the order of their initialization, whatever the order in which they are started
// (MPI-4, 6.13).
#include <string>
#include <vector>

#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int ints = 3000, operations = 3;

int value(int rank, int k, int target) { return 1000 * k + 10 * rank + target; }

struct Buffers {
  Buffers() : size(static_cast<std::size_t>(world_size())) {
    for (int k = 0; k < operations; ++k) {
      std::vector<int> all(size * ints);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = value(world_rank(), k, static_cast<int>(i) / ints);
      out.push_back(all);
      in.emplace_back(size * ints, -1);
    }
  }
  std::size_t size;
  std::vector<std::vector<int>> out, in;
};

using Init = void (*)(int* out, int* in, MPI_Request* request);
/// The value that block b of the result of operation k must have on this rank; -1 if it is not checked.
using Expected = int (*)(int k, int b);

enum Order { same, swapped, rotated, one_waited_for_first };

void start_and_wait(MPI_Request* requests, Order order, int round) {
  const int rank = world_rank();
  if (order == same) {
    MPI_Startall(operations, requests);
  } else if (order == swapped) {
    for (int k = 0; k < operations; ++k) MPI_Start(&requests[rank % 2 ? operations - 1 - k : k]);
  } else if (order == rotated) {
    for (int k = 0; k < operations; ++k) MPI_Start(&requests[(k + rank + round) % operations]);
  } else {
    // Rank 0 completes each operation before it starts the next; the other ranks start all of them first.
    for (int k = 0; k < operations; ++k) {
      MPI_Start(&requests[k]);
      if (rank == 0) MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    }
  }
  MPI_Waitall(operations, requests, MPI_STATUSES_IGNORE);
}

void in_every_order(Init init, Expected expected) {
  Buffers buffers;
  MPI_Request requests[operations];
  for (int k = 0; k < operations; ++k) {
    const auto at = static_cast<std::size_t>(k);
    init(buffers.out[at].data(), buffers.in[at].data(), &requests[k]);
  }
  const char* names[] = {"same", "swapped", "rotated", "one waited for first"};
  for (int round = 0; round < 12; ++round) {
    step(names[round % 4]);
    start_and_wait(requests, static_cast<Order>(round % 4), round);
    for (int k = 0; k < operations; ++k)
      for (int b = 0; b < world_size(); ++b) {
        const int right = expected(k, b);
        std::vector<int>& in = buffers.in[static_cast<std::size_t>(k)];
        const auto first = static_cast<std::size_t>(b) * ints;
        if (right >= 0 && (in[first] != right || in[first + ints - 1] != right))
          fail_check(__FILE__, __LINE__,
                     std::string(names[round % 4]) + ": operation " + std::to_string(k) + " block " +
                         std::to_string(b) + ": expected " + std::to_string(right) + ", got " +
                         std::to_string(in[first]));
      }
    // The results are not cleared: MPICH 4.0.2 skips parts of a persistent collective when it is started again.
  }
  // The ranks free the requests in different orders.
  for (int k = 0; k < operations; ++k) MPI_Request_free(&requests[world_rank() % 2 ? operations - 1 - k : k]);
}

int sum(int k, int b) {
  int all = 0;
  for (int r = 0; r < world_size(); ++r) all += value(r, k, b);
  return all;
}

constexpr MPI_Comm world = MPI_COMM_WORLD;

}  // namespace

MPI_CASE(allgather) {
  in_every_order(
      [](int* out, int* in, MPI_Request* q) {
        MPI_Allgather_init(out, ints, MPI_INT, in, ints, MPI_INT, world, MPI_INFO_NULL, q);
      },
      [](int k, int b) { return value(b, k, 0); });
}

MPI_CASE(alltoall) {
  in_every_order(
      [](int* out, int* in, MPI_Request* q) {
        MPI_Alltoall_init(out, ints, MPI_INT, in, ints, MPI_INT, world, MPI_INFO_NULL, q);
      },
      [](int k, int b) { return value(b, k, world_rank()); });
}

MPI_CASE(bcast) {
  // The root sends from `out`, so its `in` is not checked.
  in_every_order(
      [](int* out, int* in, MPI_Request* q) {
        MPI_Bcast_init(world_rank() ? in : out, ints, MPI_INT, 0, world, MPI_INFO_NULL, q);
      },
      [](int k, int b) { return world_rank() && b == 0 ? value(0, k, 0) : -1; });
}

MPI_CASE(allreduce) {
  in_every_order([](int* out, int* in,
                    MPI_Request* q) { MPI_Allreduce_init(out, in, ints, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, q); },
                 [](int k, int b) { return b == 0 ? sum(k, 0) : -1; });
}

MPI_CASE(reduce_scatter_block) {
  in_every_order(
      [](int* out, int* in, MPI_Request* q) {
        MPI_Reduce_scatter_block_init(out, in, ints, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, q);
      },
      [](int k, int b) { return b == 0 ? sum(k, world_rank()) : -1; });
}

MPI_CASE(gather) {
  in_every_order(
      [](int* out, int* in, MPI_Request* q) {
        MPI_Gather_init(out, ints, MPI_INT, in, ints, MPI_INT, 1, world, MPI_INFO_NULL, q);
      },
      [](int k, int b) { return world_rank() == 1 ? value(b, k, 0) : -1; });
}

// Scatter is not tested: MPICH 4.0.2 fails in MPI_Waitall if persistent scatters are started in different orders.

MPI_CASE(mixed_with_nonblocking_collectives) {
  // Nonblocking collectives and initializations match in one common order. MPI_Start is not part of that order.
  const int rank = world_rank(), size = world_size();
  const auto all = static_cast<std::size_t>(size) * ints;
  std::vector<int> out[3], in[3];
  for (int k = 0; k < 3; ++k) {
    out[k].assign(ints, value(rank, k, 0));
    in[k].assign(all, -1);
  }
  MPI_Request first, second, between;
  MPI_Allgather_init(out[0].data(), ints, MPI_INT, in[0].data(), ints, MPI_INT, world, MPI_INFO_NULL, &first);
  MPI_Allgather_init(out[1].data(), ints, MPI_INT, in[1].data(), ints, MPI_INT, world, MPI_INFO_NULL, &second);
  for (int round = 0; round < 8; ++round) {
    MPI_Request* const starts[] = {&first, &second};
    if (rank % 2) MPI_Start(starts[round % 2]);
    MPI_Iallgather(out[2].data(), ints, MPI_INT, in[2].data(), ints, MPI_INT, world, &between);
    if (rank % 2 == 0) MPI_Start(starts[1 - round % 2]);
    MPI_Start(starts[rank % 2 ? 1 - round % 2 : round % 2]);
    MPI_Request requests[] = {first, between, second};
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 3; ++k)
      for (int r = 0; r < size; ++r) CHECK_EQUAL(value(r, k, 0), in[k][static_cast<std::size_t>(r) * ints]);
  }
  MPI_Request_free(&first);
  MPI_Request_free(&second);
}

MPI_CASE(some_freed_and_initialized_again) {
  const int size = world_size();
  std::vector<int> out[2], in[2];
  MPI_Request requests[2];
  for (int k = 0; k < 2; ++k) {
    out[k].assign(ints, value(world_rank(), k, 0));
    in[k].assign(static_cast<std::size_t>(size) * ints, -1);
    MPI_Allgather_init(out[k].data(), ints, MPI_INT, in[k].data(), ints, MPI_INT, world, MPI_INFO_NULL, &requests[k]);
  }
  for (int round = 0; round < 8; ++round) {
    const int first = world_rank() % 2;
    MPI_Start(&requests[first]);
    MPI_Start(&requests[1 - first]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 2; ++k)
      for (int r = 0; r < size; ++r) CHECK_EQUAL(value(r, k, 0), in[k][static_cast<std::size_t>(r) * ints]);
    const int again = round % 2;
    in[again].assign(in[again].size(), -1);
    MPI_Request_free(&requests[again]);
    MPI_Allgather_init(out[again].data(), ints, MPI_INT, in[again].data(), ints, MPI_INT, world, MPI_INFO_NULL,
                       &requests[again]);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
