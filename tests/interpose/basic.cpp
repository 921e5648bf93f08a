// SPDX-License-Identifier: Apache-2.0
// Every kind of intercepted call, in one process or several: the bytes of the layout arrive, no other byte changes,
// statuses equal those of the MPI library, and requests become MPI_REQUEST_NULL.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/support/harness.hpp"

namespace {

using namespace bestride::test;

/// vector(blocks, length, stride, double), or a struct of as many blocks, and buffers for it.
struct Case {
  int blocks, length, stride;
  bool structured;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int size = 0;
  MPI_Aint extent = 0, lower = 0;

  Case(int b, int l, int s, bool record) : blocks(b), length(l), stride(s), structured(record) {
    if (structured) {
      // Repeated int and double with a gap. The basic types are mixed, so respelling does not help.
      MPI_Datatype pair, spaced;
      const int lengths[] = {1, length};
      const MPI_Aint at[] = {0, 8};
      const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
      MPI_Type_create_struct(2, lengths, at, types, &pair);
      MPI_Type_create_resized(pair, 0, 8 * (stride + 2), &spaced);
      MPI_Type_contiguous(blocks, spaced, &type);
      MPI_Type_free(&pair);
      MPI_Type_free(&spaced);
    } else {
      MPI_Type_vector(blocks, length, stride, MPI_DOUBLE, &type);
    }
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lower, &extent);
  }
  ~Case() { MPI_Type_free(&type); }
  std::vector<unsigned char> buffer(int count, unsigned seed) const {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(extent * count) + 64);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<unsigned char>(i * 131 + seed * 17 + (i >> 8));
    return bytes;
  }
  /// Applies to `to` what a receive of the first `bytes` packed bytes of `from` writes.
  void deliver(const std::vector<unsigned char>& from, std::vector<unsigned char>& to, int count, int bytes) const {
    for (int e = 0; e < count; ++e)
      for (int b = 0; b < blocks; ++b) {
        std::size_t base = static_cast<std::size_t>(e * extent);
        auto move = [&](std::size_t at, int length_bytes) {
          for (int i = 0; i < length_bytes && bytes > 0; ++i, --bytes) to[base + at + i] = from[base + at + i];
        };
        if (structured) {
          move(static_cast<std::size_t>(8 * (stride + 2) * b), 4);
          move(static_cast<std::size_t>(8 * (stride + 2) * b + 8), 8 * length);
        } else {
          move(static_cast<std::size_t>(8 * stride * b), 8 * length);
        }
      }
  }
};

void blocking(const Case& c, int count) {
  const int to = (world_rank() + 1) % world_size(), from = (world_rank() + world_size() - 1) % world_size();
  const auto sent = c.buffer(count, static_cast<unsigned>(world_rank())),
             theirs = c.buffer(count, static_cast<unsigned>(from));
  auto got = c.buffer(count, 99), expected = got;
  c.deliver(theirs, expected, count, c.size * count);
  MPI_Status status;
  MPI_Sendrecv(sent.data(), count, c.type, to, 1, got.data(), count, c.type, from, 1, MPI_COMM_WORLD, &status);
  CHECK(got == expected);
  int n = -1;
  MPI_Get_count(&status, c.type, &n);
  CHECK(n == count && status.MPI_SOURCE == from && status.MPI_TAG == 1);

  // A short message: only its bytes are written.
  got = c.buffer(count, 99), expected = got;
  const int unit = c.structured ? 4 + 8 * c.length : 8;  // whole basic elements: a prefix of the signature
  // Small: MPICH 4.0.2 reports truncation if a long message fills only a part of a posted struct.
  const int part = std::min(c.size * count / unit / 2, 2000 / unit) * unit;
  std::vector<unsigned char> bytes(static_cast<std::size_t>(c.size * count));
  int position = 0;
  MPI_Pack(theirs.data(), count, c.type, bytes.data(), static_cast<int>(bytes.size()), &position, MPI_COMM_WORLD);
  CHECK(position == c.size * count);
  c.deliver(theirs, expected, count, part);
  MPI_Request request;
  MPI_Irecv(got.data(), count, c.type, world_rank(), 2, MPI_COMM_WORLD, &request);
  MPI_Send(bytes.data(), part, MPI_PACKED, world_rank(), 2, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK(got == expected);

  got = c.buffer(count, 5), expected = got;
  c.deliver(theirs, expected, count, c.size * count);
  position = 0;
  MPI_Unpack(bytes.data(), static_cast<int>(bytes.size()), &position, got.data(), count, c.type, MPI_COMM_WORLD);
  CHECK(got == expected && position == c.size * count);

  // A receive from MPI_PROC_NULL changes nothing.
  got = c.buffer(count, 6), expected = got;
  MPI_Recv(got.data(), count, c.type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  CHECK(got == expected && status.MPI_SOURCE == MPI_PROC_NULL);

  // MPICH 4.0.2 sends a packed copy in MPI_Sendrecv_replace, and its receiver reports truncation of a long struct.
  if (c.structured && c.size * count > 4096) return;
  auto swapped = sent;
  expected = sent;
  c.deliver(theirs, expected, count, c.size * count);
  MPI_Sendrecv_replace(swapped.data(), count, c.type, to, 3, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(swapped == expected);
}

/// Ways to complete requests, of which some may already be null.
void complete(int completion, std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
  const int n = static_cast<int>(requests.size());
  int flag = 0, index = 0, done = 0;
  std::vector<int> indices(requests.size());
  switch (completion) {
    case 0: MPI_Waitall(n, requests.data(), statuses.data()); break;
    case 1: MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE); break;
    case 2:
      for (int i = n; i-- > 0;) MPI_Wait(&requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
      break;
    case 3:
      for (auto& r : requests) do
          MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        while (!flag);
      break;
    case 4:
      do MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE);
      while (index != MPI_UNDEFINED);
      break;
    case 5:
      do MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
      while (!flag || index != MPI_UNDEFINED);
      break;
    case 6:
      do MPI_Waitsome(n, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
      while (done != MPI_UNDEFINED);
      break;
    case 7:
      do MPI_Testsome(n, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
      while (done != MPI_UNDEFINED);
      break;
    case 8:
      do MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE);
      while (!flag);
      break;
    case 9:
      do MPI_Testall(n, requests.data(), &flag, statuses.data());
      while (!flag);
      break;
    case 10:
      for (auto& r : requests) do
          MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
        while (!flag);
      MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
      break;
  }
}
constexpr int completions = 11;

void nonblocking(const Case& c, int count, int completion, int messages) {
  const int to = (world_rank() + 1) % world_size(), from = (world_rank() + world_size() - 1) % world_size();
  const auto theirs = c.buffer(count, static_cast<unsigned>(from)),
             sent = c.buffer(count, static_cast<unsigned>(world_rank()));
  std::vector<std::vector<unsigned char>> got(static_cast<std::size_t>(messages), c.buffer(count, 77));
  auto expected = got[0];
  c.deliver(theirs, expected, count, c.size * count);
  std::vector<MPI_Request> requests(static_cast<std::size_t>(2 * messages), MPI_REQUEST_NULL);
  std::vector<MPI_Status> statuses(requests.size());
  for (int m = 0; m < messages; ++m) {
    MPI_Irecv(got[static_cast<std::size_t>(m)].data(), count, c.type, m % 2 ? from : MPI_ANY_SOURCE, m, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(2 * m)]);
    (m % 3 ? MPI_Isend : MPI_Issend)(sent.data(), count, c.type, to, m, MPI_COMM_WORLD,
                                     &requests[static_cast<std::size_t>(2 * m + 1)]);
  }
  complete(completion, requests, statuses);
  for (MPI_Request r : requests) CHECK(r == MPI_REQUEST_NULL);
  for (auto& each : got) CHECK(each == expected);
  if (completion == 0 || completion == 9) {
    int n = -1;
    MPI_Get_count(&statuses[0], c.type, &n);
    CHECK(n == count && statuses[0].MPI_SOURCE == from);
  }
}

/// The buffer keeps its address, because persistent requests refer to it.
void refill(std::vector<unsigned char>& buffer, const std::vector<unsigned char>& bytes) {
  std::copy(bytes.begin(), bytes.end(), buffer.begin());
}

void persistent(const Case& c, int count, int completion) {
  const int to = (world_rank() + 1) % world_size(), from = (world_rank() + world_size() - 1) % world_size();
  auto sent = c.buffer(count, 0), got = c.buffer(count, 0);
  std::vector<MPI_Request> requests(2);
  MPI_Recv_init(got.data(), count, c.type, from, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(sent.data(), count, c.type, to, 5, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);  // inactive: returns at once
  for (unsigned turn = 0; turn < 3; ++turn) {
    refill(sent, c.buffer(count, static_cast<unsigned>(world_rank()) + turn * 10));
    refill(got, c.buffer(count, 200));
    auto expected = got;
    c.deliver(c.buffer(count, static_cast<unsigned>(from) + turn * 10), expected, count, c.size * count);
    if (turn == 1) {
      MPI_Start(&requests[0]);
      MPI_Start(&requests[1]);
    } else {
      MPI_Startall(2, requests.data());
    }
    std::vector<MPI_Status> statuses(2);
    if (completion == 3) {
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    } else {
      complete(completion, requests, statuses);
    }
    CHECK(got == expected);
    got[0] ^= 1;  // a later wait on the inactive request must not write the buffer again
    auto kept = got;
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    CHECK(got == kept);
  }
  // A request that is freed while active still completes.
  refill(got, c.buffer(count, 201));
  MPI_Startall(2, requests.data());
  MPI_Request_free(&requests[1]);
  CHECK(requests[1] == MPI_REQUEST_NULL);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
  auto expected = c.buffer(count, 201);
  c.deliver(c.buffer(count, static_cast<unsigned>(from) + 20), expected, count, c.size * count);
  CHECK(got == expected);
  MPI_Barrier(MPI_COMM_WORLD);  // the freed send may read its buffer until the peer has it
}

void neighbors(const Case& c, int count) {
  for (int periodic = 0; periodic < 2; ++periodic) {
    MPI_Comm line;
    const int sizes[] = {world_size()}, periods[] = {periodic};
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &line);
    int around[2];
    MPI_Cart_shift(line, 0, 1, &around[0], &around[1]);
    const std::size_t block = static_cast<std::size_t>(c.extent) * static_cast<std::size_t>(count);
    auto sent = c.buffer(2 * count, static_cast<unsigned>(world_rank()));
    for (int form = 0; form < 6; ++form) {
      auto got = c.buffer(2 * count, 60), expected = got;
      for (std::size_t side = 0; side < 2; ++side)
        if (around[side] != MPI_PROC_NULL) {
          const auto theirs = c.buffer(2 * count, static_cast<unsigned>(around[side]));
          // The neighbor sends the block of its other side; in an allgather, its first block.
          std::size_t other = form == 3 || form == 4 ? 0 : 1 - side;
          std::vector<unsigned char> from_block(theirs.begin() + static_cast<long>(other * block), theirs.end());
          std::vector<unsigned char> to_block(expected.begin() + static_cast<long>(side * block), expected.end());
          c.deliver(from_block, to_block, count, c.size * count);
          std::copy(to_block.begin(), to_block.end(), expected.begin() + static_cast<long>(side * block));
        }
      const int counts[] = {count, count}, at[] = {0, count};
      const MPI_Aint bytes_at[] = {0, static_cast<MPI_Aint>(block)};
      const MPI_Datatype types[] = {c.type, c.type};
      MPI_Request request = MPI_REQUEST_NULL;
      switch (form) {
        case 0:
          MPI_Neighbor_alltoallw(sent.data(), counts, bytes_at, types, got.data(), counts, bytes_at, types, line);
          break;
        case 1:
          MPI_Ineighbor_alltoallw(sent.data(), counts, bytes_at, types, got.data(), counts, bytes_at, types, line,
                                  &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          break;
        case 2: MPI_Neighbor_alltoall(sent.data(), count, c.type, got.data(), count, c.type, line); break;
        case 3: MPI_Neighbor_allgather(sent.data(), count, c.type, got.data(), count, c.type, line); break;
        case 4:
          MPI_Ineighbor_allgatherv(sent.data(), count, c.type, got.data(), counts, at, c.type, line, &request);
          MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
          break;
        case 5: MPI_Neighbor_alltoallv(sent.data(), counts, at, c.type, got.data(), counts, at, c.type, line); break;
      }
      // Both neighbors are the same rank, and the MPI library decides which of its blocks arrives where.
      const bool ambiguous = periodic && world_size() < 3;
      if (!ambiguous) CHECK(got == expected);
      CHECK(request == MPI_REQUEST_NULL);
    }
#if MPI_VERSION >= 4
    {
      // A persistent collective that Bestride carries out returns an error if its execution is made to fail.
      const char* const failure = std::getenv("BESTRIDE_FORCE");
      const bool may_fail = failure && std::string_view(failure) == "fail=operation";
      if (may_fail) MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN);
      auto got = c.buffer(2 * count, 61);
      auto reference = got;
      const int counts[] = {count, count};
      const MPI_Aint bytes_at[] = {0, static_cast<MPI_Aint>(block)};
      const MPI_Datatype types[] = {c.type, c.type};
      MPI_Request request;
      MPI_Neighbor_alltoallw_init(sent.data(), counts, bytes_at, types, got.data(), counts, bytes_at, types, line,
                                  MPI_INFO_NULL, &request);
      for (int turn = 0; turn < 3; ++turn) {
        refill(sent, c.buffer(2 * count, static_cast<unsigned>(world_rank() + turn)));
        refill(got, c.buffer(2 * count, 61));
        refill(reference, got);
        MPI_Start(&request);
        const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        PMPI_Neighbor_alltoallw(sent.data(), counts, bytes_at, types, reference.data(), counts, bytes_at, types, line);
        CHECK(error == MPI_SUCCESS ? got == reference : may_fail);
      }
      MPI_Request_free(&request);
    }
#endif
    MPI_Comm_free(&line);
  }
}

/// Calls check(type, count) for types that are forwarded, respelled and packed.
template <class Check>
void for_each_case(Check check) {
  const Case cases[] = {{1, 1, 1, false},    {7, 1, 2, false}, {100, 3, 5, false},
                        {4000, 1, 2, false}, {5, 2, 3, true},  {3000, 1, 2, true}};
  for (const Case& c : cases)
    for (int count : {1, 3}) check(c, count);
}

MPI_CASE(blocking_calls) {
  for_each_case([](const Case& c, int count) {
    for (int repeat = 0; repeat < 3; ++repeat) blocking(c, count);
  });
}
MPI_CASE(nonblocking_calls) {
  for_each_case([](const Case& c, int count) {
    for (int completion = 0; completion < completions; ++completion) nonblocking(c, count, completion, 5);
    if (c.size < 10000)
      for (int completion : {1, 6, 7, 8}) nonblocking(c, count, completion, 70);
  });
}
MPI_CASE(persistent_requests) {
  for_each_case([](const Case& c, int count) {
    for (int completion : {0, 1, 2, 3, 8, 9, 10}) persistent(c, count, completion);
  });
}
MPI_CASE(neighbor_collectives) { for_each_case(neighbors); }

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, MPI_THREAD_MULTIPLE); }
