// SPDX-License-Identifier: Apache-2.0
// Contiguous messages between ranks that share a cache, in every kind of call: the bytes arrive, no other byte changes,
// and statuses are those of the MPI library. near_ranks.py checks which of them were respelled.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/support/harness.hpp"

namespace {

using namespace bestride::test;

/// Around the eager limit (8 KiB), the profile's crossing (16 KiB), and far beyond.
constexpr int sizes[] = {8, 8192, 8200, 16376, 16384, 16640, 65536, 1 << 20};
constexpr int guard = 64;

using Bytes = std::vector<unsigned char>;

Bytes pattern(int bytes, int seed) {
  Bytes made(static_cast<std::size_t>(bytes + guard));
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<unsigned char>(i * 7 + (i >> 9) + 31u * seed);
  return made;
}
/// What a buffer of pattern(bytes, 99) must be after a message of `arrived` bytes of pattern(bytes, seed).
Bytes after(int bytes, int arrived, int seed) {
  Bytes expected = pattern(bytes, 99);
  const Bytes sent = pattern(bytes, seed);
  std::copy(sent.begin(), sent.begin() + arrived, expected.begin());
  return expected;
}

/// -1: there is none.
std::ptrdiff_t first_difference(const Bytes& expected, const Bytes& got) {
  const auto at = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end()).first;
  return at == expected.end() ? -1 : at - expected.begin();
}

int next_rank() { return (world_rank() + 1) % world_size(); }
int previous_rank() { return (world_rank() + world_size() - 1) % world_size(); }

void check_status(const MPI_Status& status, MPI_Datatype type, int source, int count) {
  int got = -1, elements = -1;
  MPI_Get_count(&status, type, &got);
  MPI_Get_elements(&status, type, &elements);
  CHECK_EQUAL(count, got);
  CHECK_EQUAL(count, elements);
  CHECK_EQUAL(source, status.MPI_SOURCE);
}

MPI_CASE(blocking_messages) {
  for (const int bytes : sizes)
    for (const MPI_Datatype type : {MPI_BYTE, MPI_DOUBLE}) {
      const int count = type == MPI_BYTE ? bytes : bytes / 8;
      const Bytes out = pattern(bytes, world_rank());
      Bytes in = pattern(bytes, 99);
      MPI_Status status;
      if (world_rank() % 2 == 0) MPI_Send(out.data(), count, type, next_rank(), 1, MPI_COMM_WORLD);
      MPI_Recv(in.data(), count, type, previous_rank(), 1, MPI_COMM_WORLD, &status);
      if (world_rank() % 2 != 0) MPI_Send(out.data(), count, type, next_rank(), 1, MPI_COMM_WORLD);
      check_status(status, type, previous_rank(), count);
      CHECK_EQUAL(-1, first_difference(after(bytes, bytes, previous_rank()), in));
    }
}

MPI_CASE(exchanges_on_another_communicator) {
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  for (const int bytes : sizes) {
    const int count = bytes / 8, here = world_size() - 1 - world_rank();
    const int to = (here + 1) % world_size(), from = (here + world_size() - 1) % world_size();
    const Bytes out = pattern(bytes, here);
    Bytes in = pattern(bytes, 99);
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Irecv(in.data(), count, MPI_DOUBLE, from, 2, reversed, &requests[0]);
    MPI_Isend(out.data(), count, MPI_DOUBLE, to, 2, reversed, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    check_status(statuses[0], MPI_DOUBLE, from, count);
    CHECK_EQUAL(-1, first_difference(after(bytes, bytes, from), in));
    in = pattern(bytes, 99);
    MPI_Sendrecv(out.data(), count, MPI_DOUBLE, to, 3, in.data(), count, MPI_DOUBLE, from, 3, reversed, &statuses[0]);
    check_status(statuses[0], MPI_DOUBLE, from, count);
    CHECK_EQUAL(-1, first_difference(after(bytes, bytes, from), in));
  }
  MPI_Comm_free(&reversed);
}

MPI_CASE(any_source_probes_and_longer_buffers) {
  for (const int bytes : sizes) {
    const int count = bytes / 8;
    const Bytes out = pattern(bytes, world_rank());
    Bytes in = pattern(2 * bytes, 99);
    MPI_Request request;
    MPI_Status status, probed;
    MPI_Issend(out.data(), count, MPI_DOUBLE, next_rank(), 4, MPI_COMM_WORLD, &request);
    MPI_Probe(previous_rank(), 4, MPI_COMM_WORLD, &probed);
    check_status(probed, MPI_DOUBLE, previous_rank(), count);
    MPI_Recv(in.data(), 2 * count, MPI_DOUBLE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_status(status, MPI_DOUBLE, previous_rank(), count);
    Bytes expected = pattern(2 * bytes, 99);
    const Bytes sent = pattern(bytes, previous_rank());
    std::copy(sent.begin(), sent.begin() + bytes, expected.begin());
    CHECK_EQUAL(-1, first_difference(expected, in));
  }
}

MPI_CASE(persistent_messages_and_contiguous_types) {
  for (const int bytes : sizes) {
    MPI_Datatype half;
    MPI_Type_contiguous(bytes / 2, MPI_BYTE, &half);
    MPI_Type_commit(&half);
    Bytes out = pattern(bytes, world_rank()), in = pattern(bytes, 99);
    MPI_Request requests[2];
    MPI_Recv_init(in.data(), 2, half, previous_rank(), 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out.data(), 2, half, next_rank(), 5, MPI_COMM_WORLD, &requests[1]);
    for (int time = 0; time < 3; ++time) {
      // In place: the requests keep the addresses.
      std::ranges::copy(pattern(bytes, world_rank() + time), out.begin());
      std::ranges::copy(pattern(bytes, 99), in.begin());
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      CHECK_EQUAL(-1, first_difference(after(bytes, bytes, previous_rank() + time), in));
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    MPI_Type_free(&half);
  }
}

MPI_CASE(a_longer_message_is_truncated) {
  const ReturnErrors on_world(MPI_COMM_WORLD);
  const int count = 16384;
  const Bytes out = pattern(count, world_rank());
  Bytes in = pattern(count, 99);
  MPI_Request request;
  MPI_Isend(out.data(), count, MPI_BYTE, next_rank(), 6, MPI_COMM_WORLD, &request);
  const int error = MPI_Recv(in.data(), count / 2 + 1, MPI_BYTE, previous_rank(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQUAL(MPI_ERR_TRUNCATE, error_class(error));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = count / 2 + 1; i < count + guard; ++i)
    if (in[static_cast<std::size_t>(i)] != pattern(count, 99)[static_cast<std::size_t>(i)]) {
      CHECK_EQUAL(-1, i);
      break;
    }
}

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv); }
