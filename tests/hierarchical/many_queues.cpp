// SPDX-License-Identifier: Apache-2.0
// Nonblocking and persistent collectives of many communicators on one node: each has shared memory of its own, whose
// number and size are limited; what is beyond the limits goes to the MPI library.
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

/// A nonblocking alltoall of one int per pair, checked. Returns the calls that the library has seen.
int alltoall(MPI_Comm comm, int salt) {
  const int rank = world_rank(), ranks = world_size(), before = calls_seen_by_library();
  std::vector<int> out, in(static_cast<std::size_t>(ranks), -1), expected;
  for (int other = 0; other < ranks; ++other) {
    out.push_back(salt * 10000 + rank * 100 + other);
    expected.push_back(salt * 10000 + other * 100 + rank);
  }
  MPI_Request request;
  MPI_Ialltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(in == expected);
  return calls_seen_by_library() - before;
}

/// Makes `count` communicators and calls each three times. Returns those whose third call did not go to the library.
int shared_among(int count) {
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(count));
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int shared = 0;
  for (int time = 0; time < 3; ++time)
    for (int i = 0; i < count; ++i) {
      const int calls = alltoall(comms[static_cast<std::size_t>(i)], i + time);
      if (time < 2) CHECK_EQUAL(1, calls);
      shared += time == 2 && calls == 0;
    }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return shared;
}

}  // namespace

MPI_CASE(memory_of_freed_communicators_is_used_again) {
  CHECK_EQUAL(10, shared_among(10));
  const long long before = mapped_bytes();
  for (int time = 0; time < 20; ++time) CHECK_EQUAL(10, shared_among(10));
  CHECK_EQUAL(before, mapped_bytes());
}

MPI_CASE(number_is_limited) {
  const int shared = shared_among(300);
  CHECK(shared >= 200);
  CHECK(shared <= 256);
  // When all ranks have left the earlier ones, their records are used again.
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQUAL(10, shared_among(10));
}

MPI_CASE(persistent_collectives_in_any_order) {
  constexpr int count = 80;
  const int rank = world_rank(), ranks = world_size();
  std::vector<std::vector<int>> out(count), in(count);
  std::vector<MPI_Request> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i].assign(static_cast<std::size_t>(ranks), rank * 1000 + static_cast<int>(i));
    in[i].assign(static_cast<std::size_t>(ranks), -1);
    MPI_Alltoall_init(out[i].data(), 1, MPI_INT, in[i].data(), 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  }
  for (int time = 0; time < 3; ++time) {
    // Each rank starts them in an order of its own.
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t which = rank % 2 ? count - 1 - i : i;
      for (int& value : out[which]) value += time;
      MPI_Start(&requests[which]);
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < count; ++i)
      for (int from = 0; from < ranks; ++from)
        CHECK_EQUAL(from * 1000 + static_cast<int>(i) + time * (time + 1) / 2, in[i][static_cast<std::size_t>(from)]);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

/// Beyond this, memory that was promised to communicators is not created: their collectives go by messages.
MPI_CASE(memory_is_limited) {
  constexpr int ints = 50000;
  const int rank = world_rank(), ranks = world_size();
  std::vector<MPI_Comm> comms(40);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::vector<int>> out(comms.size()), in(comms.size());
  for (int time = 0; time < 4; ++time) {
    std::vector<MPI_Request> requests(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i) {
      out[i].assign(static_cast<std::size_t>(ranks) * ints, rank + time);
      in[i].assign(out[i].size(), -1);
      MPI_Ialltoall(out[i].data(), ints, MPI_INT, in[i].data(), ints, MPI_INT, comms[i], &requests[i]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (const std::vector<int>& received : in)
      for (int from = 0; from < ranks; ++from) {
        const auto begin = received.begin() + from * ints;
        CHECK(std::vector<int>(begin, begin + ints) == std::vector<int>(ints, from + time));
      }
  }
  CHECK(mapped_bytes() < 64 << 20);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
