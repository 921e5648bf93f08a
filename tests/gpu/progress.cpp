// SPDX-License-Identifier: Apache-2.0
// After MPI_Isend of device memory, any sequence of calls delivers the message: call orders in which GPU-aware
// libraries have hung, and calls that are not intercepted. Two ranks. If a message is not sent, the test hangs until
// its time limit.
#include <array>
#include <functional>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

int peer() { return 1 - world_rank(); }

/// Rank 0 sends and calls `next`; rank 1 calls `next` only after it has received. On rank 0 `next` returns only then.
void send_then(const std::function<void()>& next) {
  for (const char* type : {"double", small_type, record_type, large_type}) {
    TypedData out = outgoing(type, 1, 0), in = incoming(type, 1);
    MPI_Request send = MPI_REQUEST_NULL;
    if (world_rank() == 0) MPI_Isend(out.address(), 1, out.type(), 1, 1, MPI_COMM_WORLD, &send);
    if (world_rank() == 1) {
      MPI_Recv(in.address(), 1, in.type(), 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      in.expect(outgoing(type, 1, 0).packed());
    }
    next();
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

struct Exchange {
  explicit Exchange(const char* type) : out(outgoing(type, 1, world_rank())), in(incoming(type, 1)), type_(type) {}
  void isend() { MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &send); }
  void irecv() { MPI_Irecv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &receive); }
  void check() { in.expect(outgoing(type_, 1, peer()).packed()); }
  TypedData out, in;
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;

 private:
  const char* type_;
};

}  // namespace

MPI_CASE(irecv_isend_wait_for_the_receive_wait_for_the_send) {
  for (const char* type : every_type) {
    Exchange e(type);
    e.irecv();
    e.isend();
    MPI_Wait(&e.receive, MPI_STATUS_IGNORE);
    e.check();
    MPI_Wait(&e.send, MPI_STATUS_IGNORE);
    CHECK(e.send == MPI_REQUEST_NULL && e.receive == MPI_REQUEST_NULL);
  }
}

MPI_CASE(isend_recv_wait) {
  for (const char* type : every_type) {
    Exchange e(type);
    e.isend();
    MPI_Recv(e.in.address(), 1, e.in.type(), peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    e.check();
    MPI_Wait(&e.send, MPI_STATUS_IGNORE);
  }
}

MPI_CASE(isend_barrier) {
  send_then([] { MPI_Barrier(MPI_COMM_WORLD); });
}

MPI_CASE(isend_barrier_by_its_profiling_name) {
  send_then([] { PMPI_Barrier(MPI_COMM_WORLD); });
}

MPI_CASE(isend_test_loop) {
  for (const char* type : every_type) {
    Exchange e(type);
    e.irecv();
    e.isend();
    for (int done = 0; !done;) MPI_Test(&e.receive, &done, MPI_STATUS_IGNORE);
    e.check();
    for (int done = 0; !done;) MPI_Test(&e.send, &done, MPI_STATUS_IGNORE);
    CHECK(e.send == MPI_REQUEST_NULL);
  }
}

MPI_CASE(isend_test_loop_of_the_send_only) {
  // A synchronous send completes only when the peer has started to receive it.
  TypedData out = outgoing(small_type, 1, 0), in = incoming(small_type, 1);
  if (world_rank() == 0) {
    MPI_Request send;
    MPI_Issend(out.address(), 1, out.type(), 1, 1, MPI_COMM_WORLD, &send);
    for (int done = 0; !done;) MPI_Test(&send, &done, MPI_STATUS_IGNORE);
    CHECK(send == MPI_REQUEST_NULL);
  } else {
    MPI_Recv(in.address(), 1, in.type(), 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    in.expect(outgoing(small_type, 1, 0).packed());
  }
}

MPI_CASE(isend_iprobe_loop) {
  for (const char* type : every_type) {
    Exchange e(type);
    e.isend();
    for (int there = 0; !there;) MPI_Iprobe(peer(), 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    MPI_Recv(e.in.address(), 1, e.in.type(), peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    e.check();
    MPI_Wait(&e.send, MPI_STATUS_IGNORE);
  }
}

MPI_CASE(isend_probe) {
  Exchange e(small_type);
  e.isend();
  MPI_Probe(peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(e.in.address(), 1, e.in.type(), peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  e.check();
  MPI_Wait(&e.send, MPI_STATUS_IGNORE);
}

MPI_CASE(isend_get_status_loop) {
  Exchange e(small_type);
  e.irecv();
  e.isend();
  for (int done = 0; !done;) MPI_Request_get_status(e.receive, &done, MPI_STATUS_IGNORE);
  MPI_Wait(&e.receive, MPI_STATUS_IGNORE);
  e.check();
  for (int done = 0; !done;) MPI_Request_get_status(e.send, &done, MPI_STATUS_IGNORE);
  CHECK(e.send != MPI_REQUEST_NULL);
  MPI_Wait(&e.send, MPI_STATUS_IGNORE);
  CHECK(e.send == MPI_REQUEST_NULL);
}

MPI_CASE(isend_then_freed) {
  Exchange e(small_type);
  e.irecv();
  e.isend();
  MPI_Request_free(&e.send);
  CHECK(e.send == MPI_REQUEST_NULL);
  MPI_Wait(&e.receive, MPI_STATUS_IGNORE);
  e.check();
  MPI_Barrier(MPI_COMM_WORLD);
}

MPI_CASE(isend_then_calls_that_are_not_intercepted) {
  send_then([] { MPI_Allreduce(MPI_IN_PLACE, std::array{1}.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
  send_then([] {
    int number = 0;
    MPI_Bcast(&number, 1, MPI_INT, 1, MPI_COMM_WORLD);
  });
  send_then([] {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  send_then([] {
    MPI_Comm copy;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &copy);
    MPI_Comm_free(&copy);
  });
  send_then([] {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
  });
  send_then([] {
    int number = 0;
    MPI_Win window;
    MPI_Win_create(&number, sizeof number, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  });
  send_then([] {
    std::array<int, 4> numbers{};
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, numbers.data(), 1, MPI_INT, MPI_COMM_WORLD);
  });
}

MPI_CASE(cancelled) {
  // A cancelled message is not received. MPICH does not cancel a send that has started, so it may be received.
  TypedData out = outgoing(small_type, 1, 0), in = incoming(small_type, 1);
  int cancelled = 0;
  if (world_rank() == 0) {
    MPI_Request send;
    MPI_Status status;
    MPI_Isend(out.address(), 1, out.type(), 1, 9, MPI_COMM_WORLD, &send);
    MPI_Cancel(&send);
    MPI_Wait(&send, &status);
    CHECK(send == MPI_REQUEST_NULL);
    MPI_Test_cancelled(&status, &cancelled);
  }
  MPI_Bcast(&cancelled, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (world_rank() == 1 && !cancelled) {
    MPI_Recv(in.address(), 1, in.type(), 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    in.expect(outgoing(small_type, 1, 0).packed());
  }
}

MPI_CASE(long_and_short_and_host_messages_do_not_overtake) {
  // Deferred sends, long messages that are sent at once, and messages from host memory follow each other with the same
  // tag.
  const char* types[] = {small_type, large_type, "double", "vector(9000,1,3,double)", record_type};
  std::vector<std::unique_ptr<TypedData>> out, in;
  std::vector<MPI_Request> sends;
  std::array<double, 3> from_host{1, 2, 3}, to_host{};
  for (int round = 0; round < 5; ++round)
    for (const char* type : types) {
      out.push_back(std::make_unique<TypedData>(type, 1, outgoing_seed(world_rank())));
      MPI_Isend(out.back()->address(), 1, out.back()->type(), peer(), 1, MPI_COMM_WORLD, &sends.emplace_back());
      MPI_Isend(from_host.data(), 3, MPI_DOUBLE, peer(), 1, MPI_COMM_WORLD, &sends.emplace_back());
    }
  for (int round = 0; round < 5; ++round)
    for (const char* type : types) {
      TypedData in = incoming(type, 1);
      MPI_Status status;
      MPI_Recv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &status);
      check_status(status, peer(), 1, in.type(), 1);
      in.expect(outgoing(type, 1, peer()).packed());
      MPI_Recv(to_host.data(), 3, MPI_DOUBLE, peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(to_host == from_host);
    }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
