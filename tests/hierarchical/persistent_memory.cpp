// SPDX-License-Identifier: Apache-2.0
// Each persistent collective has its own shared memory: as much as its size needs, but at most an eighth of
// BESTRIDE_WINDOW_LIMIT. Two ranks per node; the last case: on one node.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

/// The bytes that the first start of a persistent allgather of `ints` ints per rank maps. Checks its result.
long long mapped_by_allgather(int ints) {
  const int rank = world_rank(), ranks = world_size(), calls = calls_seen_by_library();
  const long long before = mapped_bytes();
  std::vector<int> out(static_cast<std::size_t>(ints), rank), in(out.size() * static_cast<std::size_t>(ranks), -1),
      expected;
  for (int from = 0; from < ranks; ++from) expected.insert(expected.end(), out.size(), from);
  MPI_Request request;
  MPI_Allgather_init(out.data(), ints, MPI_INT, in.data(), ints, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in == expected);
  CHECK_EQUAL(calls, calls_seen_by_library());
  const long long mapped = mapped_bytes() - before;
  MPI_Request_free(&request);
  return mapped;
}

/// Bytes of Bestride's shared memory that this rank has touched.
long long resident_bytes() {
  long long kib = 0, sum = 0;
  bool ours = false;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);)
    if (std::sscanf(line.c_str(), "Rss: %lld kB", &kib) == 1)
      sum += ours ? 1024 * kib : 0;
    else if (line.find('-') < line.find(' '))
      ours = line.find("memfd:bestride") != std::string::npos;
  return sum;
}

}  // namespace

MPI_CASE(fits_the_size) {
  // A total of 1 KiB: two rings of four pages for each of the node's two ranks, and counters.
  const long long small = mapped_by_allgather(64);
  CHECK(small >= 4 * 16 * 1024);
  CHECK(small < 2 * 4 * 16 * 1024);
}

MPI_CASE(is_limited) {
  const long long large = mapped_by_allgather(1 << 20);
  CHECK(large > 4 << 20);
  CHECK(large < 9 << 20);
}

/// What shorter ones have used would do for small slots.
MPI_CASE(is_not_that_of_a_shorter_one) {
  for (int i = 0; i < 3; ++i) {
    mapped_by_allgather(2048);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const long long before = resident_bytes();
  mapped_by_allgather(1 << 20);
  CHECK(resident_bytes() - before > 512 << 10);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
