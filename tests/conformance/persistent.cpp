// SPDX-License-Identifier: Apache-2.0
// Persistent requests of derived types, started repeatedly with new buffer contents.
#include <array>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

/// Writes new contents into the send buffer for each round. Returns the bytes that the receiver must get.
Bytes refill(TypedData& data, int rank, int round) {
  const Bytes packed =
      noise(static_cast<std::size_t>(data.packed_size()), static_cast<std::uint64_t>(rank * 100 + round));
  data.buffer().scatter(data.runs(), packed);
  data.upload();
  return packed;
}

using Init = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

void rounds(Init init, const char* type, bool startall) {
  const Ring ring;
  TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 2);
  std::array<MPI_Request, 2> requests;
  MPI_Recv_init(in.address(), 2, in.type(), ring.previous, 3, MPI_COMM_WORLD, &requests[0]);
  init(out.address(), 2, out.type(), ring.next, 3, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 4; ++round) {
    refill(out, ring.rank, round);
    const Bytes expected =
        noise(static_cast<std::size_t>(out.packed_size()), static_cast<std::uint64_t>(ring.previous * 100 + round));
    if (startall) {
      MPI_Startall(2, requests.data());
    } else {
      MPI_Start(&requests[0]);
      MPI_Start(&requests[1]);
    }
    std::array<MPI_Status, 2> statuses;
    MPI_Waitall(2, requests.data(), statuses.data());
    check_status(statuses[0], ring.previous, 3, in.type(), 2);
    in.expect(expected);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

MPI_CASE(start) {
  for (const char* type : every_type) rounds(MPI_Send_init, type, false);
}

MPI_CASE(startall) {
  for (const char* type : every_type) rounds(MPI_Send_init, type, true);
}

MPI_CASE(synchronous) {
  for (const char* type : every_type) rounds(MPI_Ssend_init, type, true);
}

MPI_CASE(buffered) {
  std::vector<std::byte> attached(4 << 20);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (const char* type : every_type) rounds(MPI_Bsend_init, type, true);
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(&detached, &size);
}

MPI_CASE(ready) {
  const Ring ring;
  TypedData out = outgoing(list_type, 2, ring.rank), in = incoming(list_type, 2);
  MPI_Request send, receive;
  MPI_Recv_init(in.address(), 2, in.type(), ring.previous, 3, MPI_COMM_WORLD, &receive);
  MPI_Rsend_init(out.address(), 2, out.type(), ring.next, 3, MPI_COMM_WORLD, &send);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&receive);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    in.expect(outgoing(list_type, 2, ring.previous).packed());
  }
  MPI_Request_free(&receive);
  MPI_Request_free(&send);
}

MPI_CASE(inactive_requests_complete_immediately) {
  const Ring ring;
  TypedData out = outgoing(small_type, 1, ring.rank), in = incoming(small_type, 1);
  MPI_Request send, receive;
  MPI_Recv_init(in.address(), 1, in.type(), ring.previous, 3, MPI_COMM_WORLD, &receive);
  MPI_Send_init(out.address(), 1, out.type(), ring.next, 3, MPI_COMM_WORLD, &send);
  for (int time = 0; time < 2; ++time) {
    MPI_Status status;
    int done = 0;
    MPI_Wait(&receive, &status);
    check_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, in.type(), 0);
    MPI_Test(&send, &done, &status);
    CHECK_EQUAL(1, done);
    int index = 0;
    std::array<MPI_Request, 2> both = {send, receive};
    MPI_Waitany(2, both.data(), &index, &status);
    CHECK_EQUAL(MPI_UNDEFINED, index);
    in.expect_untouched();
    MPI_Start(&receive);
    MPI_Start(&send);
    MPI_Wait(&receive, &status);
    check_status(status, ring.previous, 3, in.type(), 1);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    in.expect(outgoing(small_type, 1, ring.previous).packed());
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

MPI_CASE(type_freed_after_init) {
  const Ring ring;
  TypedData out = outgoing(record_type, 1, ring.rank), in = incoming(record_type, 1);
  std::array<MPI_Request, 2> requests;
  MPI_Recv_init(in.address(), 1, in.type(), ring.previous, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(out.address(), 1, out.type(), ring.next, 3, MPI_COMM_WORLD, &requests[1]);
  in.free_type();
  out.free_type();
  CommittedType reuse_the_handle("vector(3,1,2,char)"), and_another("vector(5,1,2,char)");
  for (int round = 0; round < 3; ++round) {
    MPI_Startall(2, requests.data());
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    in.expect(outgoing(record_type, 1, ring.previous).packed());
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

MPI_CASE(free_while_active) {
  const Ring ring;
  TypedData out = outgoing(small_type, 1, ring.rank), in = incoming(small_type, 1);
  MPI_Request send, receive;
  MPI_Irecv(in.address(), 1, in.type(), ring.previous, 3, MPI_COMM_WORLD, &receive);
  MPI_Send_init(out.address(), 1, out.type(), ring.next, 3, MPI_COMM_WORLD, &send);
  MPI_Start(&send);
  MPI_Request_free(&send);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  in.expect(outgoing(small_type, 1, ring.previous).packed());
  MPI_Barrier(MPI_COMM_WORLD);
}

MPI_CASE(cancelled_and_started_again) {
  const Ring ring;
  TypedData out = outgoing(small_type, 1, ring.rank), in = incoming(small_type, 1);
  MPI_Request receive;
  MPI_Status status;
  MPI_Recv_init(in.address(), 1, in.type(), ring.previous, 3, MPI_COMM_WORLD, &receive);
  MPI_Start(&receive);
  MPI_Cancel(&receive);
  MPI_Wait(&receive, &status);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQUAL(1, cancelled);
  in.expect_untouched();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Start(&receive);
  MPI_Send(out.address(), 1, out.type(), ring.next, 3, MPI_COMM_WORLD);
  MPI_Wait(&receive, &status);
  check_status(status, ring.previous, 3, in.type(), 1);
  in.expect(outgoing(small_type, 1, ring.previous).packed());
  MPI_Request_free(&receive);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
