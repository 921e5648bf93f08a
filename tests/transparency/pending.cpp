// SPDX-License-Identifier: Apache-2.0
// While a nonblocking collective is pending, every call that may wait for another rank progresses it: messages and
// collectives here, calls that create and free objects in pending_objects.cpp. Four ranks.
#include <unistd.h>

#include "tests/support/typed_data.hpp"
#include "tests/transparency/under_way.hpp"

using namespace bestride::test;

namespace {

/// A periodic ring of all ranks.
struct Circle {
  Circle() {
    const int size = world_size(), periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  }
  ~Circle() { MPI_Comm_free(&comm); }
  operator MPI_Comm() const { return comm; }
  MPI_Comm comm;
};

struct Duplicate {
  Duplicate() { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }
  ~Duplicate() { MPI_Comm_free(&comm); }
  operator MPI_Comm() const { return comm; }
  MPI_Comm comm;
};

/// A message of 4 ints around the ring, received by `receive(in, status)` from any rank.
template <class Receive>
void ring_of_messages(Receive&& receive) {
  while_pending(MPI_COMM_WORLD, [&] {
    const Ring ring;
    const int out[4] = {ring.rank, ring.rank, ring.rank, ring.rank};
    int in[4] = {-1, -1, -1, -1};
    MPI_Status status;
    MPI_Request send;
    MPI_Isend(out, 4, MPI_INT, ring.next, 5, MPI_COMM_WORLD, &send);
    receive(in, &status);
    check_status(status, ring.previous, 5, MPI_INT, 4);
    CHECK_EQUAL(ring.previous, in[3]);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  });
}

/// Runs `call` on the communicator of the pending collective, and on another one.
void with_neighbors(void (*call)(MPI_Comm)) {
  const Circle circle, other;
  while_pending(circle, [&] { call(circle); });
  while_pending(circle, [&] { call(other); });
  while_pending(MPI_COMM_WORLD, [&] { call(circle); });
}

constexpr int one_each[] = {1, 1}, both[] = {0, 1};

}  // namespace

MPI_CASE(sendrecv) {
  MPI_Datatype four;
  MPI_Type_contiguous(4, MPI_INT, &four);
  MPI_Type_commit(&four);
  for (int round = 0; round < 3; ++round)
    while_pending(MPI_COMM_WORLD, [&] {
      const Ring ring;
      const int out[8] = {ring.rank, ring.rank, ring.rank, ring.rank, 1, 2, 3, 4};
      int in[16] = {};
      MPI_Status status;
      MPI_Sendrecv(out, 2, four, ring.next, 7, in, 4, four, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      check_status(status, ring.previous, 7, four, 2);
      CHECK_EQUAL(ring.previous, in[0]);
    });
  int size = 0;
  MPI_Type_size(four, &size);
  CHECK_EQUAL(16, size);
  MPI_Type_free(&four);
}

MPI_CASE(sendrecv_of_a_struct_with_gaps) {
  while_pending(MPI_COMM_WORLD, [] {
    const Ring ring;
    TypedData out = outgoing(record_type, 2, ring.rank), in = incoming(record_type, 2);
    MPI_Status status;
    MPI_Sendrecv(out.address(), 2, out.type(), ring.next, 7, in.address(), 2, in.type(), ring.previous, 7,
                 MPI_COMM_WORLD, &status);
    check_status(status, ring.previous, 7, in.type(), 2);
    in.expect(outgoing(record_type, 2, ring.previous).packed());
  });
}

MPI_CASE(sendrecv_replace) {
  for (int round = 0; round < 3; ++round)
    while_pending(MPI_COMM_WORLD, [] {
      const Ring ring;
      int data[4] = {ring.rank, ring.rank, ring.rank, ring.rank};
      MPI_Status status;
      MPI_Sendrecv_replace(data, 4, MPI_INT, ring.next, 5, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
      check_status(status, ring.previous, 5, MPI_INT, 4);
      CHECK_EQUAL(ring.previous, data[0]);
    });
}

MPI_CASE(recv) {
  ring_of_messages(
      [](int* in, MPI_Status* status) { MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, status); });
}

MPI_CASE(mprobe_and_mrecv) {
  ring_of_messages([](int* in, MPI_Status* status) {
    MPI_Message message;
    MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 4, MPI_INT, &message, status);
  });
}

MPI_CASE(probe) {
  ring_of_messages([](int* in, MPI_Status* status) {
    MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, status);
    MPI_Recv(in, 4, MPI_INT, status->MPI_SOURCE, 5, MPI_COMM_WORLD, status);
  });
}

MPI_CASE(receive_and_probe_from_proc_null) {
  while_pending(MPI_COMM_WORLD, [] {
    int in = 5, none = 0;
    const auto check = [&](const MPI_Status& status) {
      check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
      CHECK_EQUAL(5, in);
    };
    MPI_Status status;
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    check(status);
    MPI_Sendrecv(&none, 1, MPI_INT, MPI_PROC_NULL, 3, &in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    check(status);
    MPI_Sendrecv_replace(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    check(status);
    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    check(status);
    MPI_Message message;
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    check(status);
    MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
    check(status);
    MPI_Send(&none, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    MPI_Ssend(&none, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
  });
}

MPI_CASE(large_blocking_messages) {
  // A blocking send that needs its receiver, and a blocking receive that needs its sender.
  while_pending(MPI_COMM_WORLD, [] {
    const Ring ring;
    std::vector<int> out(1 << 20, ring.rank), in(1 << 20);
    const bool sends_first = ring.rank % 2 == 0;
    if (sends_first) MPI_Ssend(out.data(), 1 << 20, MPI_INT, ring.next, 2, MPI_COMM_WORLD);
    MPI_Recv(in.data(), 1 << 20, MPI_INT, ring.previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!sends_first) MPI_Send(out.data(), 1 << 20, MPI_INT, ring.next, 2, MPI_COMM_WORLD);
    CHECK_EQUAL(ring.previous, in.back());
  });
}

MPI_CASE(large_message_received_in_a_collective) {
  // Rank 2 waits for rank 3 in the shared memory of its node while a message of the next collective is in its queue.
  // Rank 3 waits until rank 2 receives a message.
  watch_for_hang();
  constexpr int count = 1 << 20;
  const int rank = world_rank();
  for (int round = 0; round < 2; ++round) {
    std::vector<int> message(rank < 2 ? 0 : count, rank);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 2) MPI_Irecv(message.data(), count, MPI_INT, 3, 2, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3) {
      usleep(100'000);
      MPI_Ssend(message.data(), count, MPI_INT, 2, 2, MPI_COMM_WORLD);
    }
    int mine = rank, all[4] = {};
    MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQUAL(3, all[3]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 2) CHECK_EQUAL(3, message.back());
  }
}

MPI_CASE(persistent_messages) {
  const Ring ring;
  int out = ring.rank, in = -1;
  MPI_Request requests[2];
  MPI_Recv_init(&in, 1, MPI_INT, ring.previous, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Ssend_init(&out, 1, MPI_INT, ring.next, 3, MPI_COMM_WORLD, &requests[1]);
  while_pending(MPI_COMM_WORLD, [&] {
    in = -1;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(ring.previous, in);
  });
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

MPI_CASE(partitioned_messages) {
  const Ring ring;
  std::vector<int> out(4000, ring.rank), in(4000);
  MPI_Request requests[2];
  MPI_Precv_init(in.data(), 4, 1000, MPI_INT, ring.previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(out.data(), 4, 1000, MPI_INT, ring.next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  while_pending(MPI_COMM_WORLD, [&] {
    in.assign(4000, -1);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 3, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(ring.previous, in.back());
  });
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

MPI_CASE(neighbor_allgather) {
  with_neighbors([](MPI_Comm comm) {
    int out = world_rank(), in[2];
    MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, comm);
    CHECK_EQUAL(Ring().previous, in[0]);
  });
}

MPI_CASE(neighbor_allgatherv) {
  with_neighbors([](MPI_Comm comm) {
    int out = world_rank(), in[2];
    MPI_Neighbor_allgatherv(&out, 1, MPI_INT, in, one_each, both, MPI_INT, comm);
    CHECK_EQUAL(Ring().previous, in[0]);
  });
}

MPI_CASE(neighbor_alltoall) {
  with_neighbors([](MPI_Comm comm) {
    int out[2] = {world_rank(), world_rank()}, in[2];
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    CHECK_EQUAL(Ring().previous, in[0]);
  });
}

MPI_CASE(neighbor_alltoallv) {
  with_neighbors([](MPI_Comm comm) {
    int out[2] = {world_rank(), world_rank()}, in[2];
    MPI_Neighbor_alltoallv(out, one_each, both, MPI_INT, in, one_each, both, MPI_INT, comm);
    CHECK_EQUAL(Ring().previous, in[0]);
  });
}

MPI_CASE(neighbor_alltoallw) {
  with_neighbors([](MPI_Comm comm) {
    int out[2] = {world_rank(), world_rank()}, in[2];
    const MPI_Aint places[] = {0, sizeof(int)};
    const MPI_Datatype types[] = {MPI_INT, MPI_INT};
    MPI_Neighbor_alltoallw(out, one_each, places, types, in, one_each, places, types, comm);
    CHECK_EQUAL(Ring().previous, in[0]);
  });
}

MPI_CASE(barrier) {
  const Duplicate other;
  while_pending(MPI_COMM_WORLD, [] { MPI_Barrier(MPI_COMM_WORLD); });
  while_pending(MPI_COMM_WORLD, [&] { MPI_Barrier(other); });
}

MPI_CASE(collectives) {
  const Duplicate other;
  for (MPI_Comm comm : {MPI_COMM_WORLD, other.comm})
    while_pending(MPI_COMM_WORLD, [comm] {
      double one = 1, sum = 0, gathered[4];
      MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
      CHECK_EQUAL(world_size(), static_cast<int>(sum));
      MPI_Scan(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
      MPI_Exscan(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
      MPI_Bcast(&sum, 1, MPI_DOUBLE, 3, comm);
      MPI_Gather(&one, 1, MPI_DOUBLE, gathered, 1, MPI_DOUBLE, 2, comm);
      MPI_Barrier(comm);
    });
}

MPI_CASE(waited_for_while_another_thread_completes_it) {
  for (int round = 0; round < 600; ++round) {
    if (round % 100 == 0) watch_for_hang();
    MPI_Request requests[3];
    int mine = world_rank() + round, sum = 0, all[4] = {};
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[2]);
    if (round % 2 == 0) {
      MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else {
      int index = 0;
      MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    CHECK_EQUAL(6 + 4 * round, sum);
    CHECK_EQUAL(3 + round, all[3]);
  }
}

MPI_CASE(barrier_and_collective_in_both_orders) {
  // Half of the ranks start the collective before the barrier of another communicator, the others after it.
  const Duplicate other;
  for (int first = 0; first < 2; ++first) {
    watch_for_hang();
    const bool early = world_rank() % 2 == first;
    if (!early) MPI_Barrier(other);
    Gather gather(MPI_COMM_WORLD);
    if (early) MPI_Barrier(other);
    gather.wait();
  }
}

MPI_CASE(chain_over_three_communicators) {
  // 0 -> 1 -> 2 -> 3, each step on its own communicator. Only rank 0 waits for the collective first; each other rank
  // can complete it only from inside its receive.
  const Duplicate first, second, third;
  const MPI_Comm steps[] = {first, second, third};
  for (int round = 0; round < 3; ++round) {
    watch_for_hang();
    Gather gather(MPI_COMM_WORLD);
    const int rank = world_rank();
    int token = round;
    if (rank == 0) gather.wait();
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, steps[rank - 1], MPI_STATUS_IGNORE);
    CHECK_EQUAL(round, token);
    if (rank < 3) MPI_Ssend(&token, 1, MPI_INT, rank + 1, 0, steps[rank]);
    if (rank > 0) gather.wait();
  }
}

MPI_CASE(chain_of_collectives_over_three_communicators) {
  // Two collectives are pending. Each rank enters the barrier of a third communicator with a different subset of them
  // completed.
  const Duplicate second, third;
  for (int first = 0; first < 2; ++first) {
    watch_for_hang();
    Gather one(MPI_COMM_WORLD);
    Gather two(second);
    if (world_rank() % 2 == first) one.wait();
    if (world_rank() / 2 == first) two.wait();
    MPI_Barrier(third);
    if (world_rank() % 2 != first) one.wait();
    if (world_rank() / 2 != first) two.wait();
  }
}

/// MPI permits no cancellation of a collective; a library says so, and the collective goes on.
MPI_CASE(cancellation_of_a_collective) {
  watch_for_hang();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Request barrier = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  const int of_library = MPI_Cancel(&barrier);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  Gather gather(MPI_COMM_WORLD);
  const int of_gather = gather.cancel();
  int expected = 0, found = 0;
  MPI_Error_class(of_library, &expected);
  MPI_Error_class(of_gather, &found);
  CHECK_EQUAL(expected, found);
  gather.wait();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
