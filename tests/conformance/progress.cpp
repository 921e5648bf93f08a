// SPDX-License-Identifier: Apache-2.0
// Orders of calls in which a message must progress without another call on its own request, and bounded memory over
// very many messages. Two ranks.
#include <array>
#include <cstdlib>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

int peer() { return 1 - world_rank(); }

/// Messages of many_messages_leave_no_memory_behind, and KiB by which they may make the memory of a rank grow.
struct Many {
  int messages = 200000;
  std::int64_t limit = 4096;
};
/// A run with delays in the driver takes fewer (TEST_MESSAGES), with the same limit per message.
Many many() {
  Many result;
  if (const char* given = std::getenv("TEST_MESSAGES")) {
    const int messages = std::atoi(given);
    result = {messages, result.limit * messages / result.messages};
  }
  return result;
}

}  // namespace

MPI_CASE(isend_then_blocking_receive) {
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, world_rank()), in = incoming(type, 1);
    MPI_Request send;
    MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &send);
    MPI_Recv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, peer()).packed());
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

MPI_CASE(wait_for_the_receive_before_the_send) {
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, world_rank()), in = incoming(type, 1);
    MPI_Request send, receive;
    MPI_Irecv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &receive);
    MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &send);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, peer()).packed());
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

MPI_CASE(isend_then_barrier) {
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, world_rank()), in = incoming(type, 1);
    MPI_Request send, receive;
    MPI_Irecv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &receive);
    MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &send);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, peer()).packed());
  }
}

MPI_CASE(messages_do_not_overtake) {
  // Messages with packed, respelled and forwarded types follow each other with the same tag.
  const int rounds = 50;
  const char* types[] = {"double", small_type, "vector(700,1,3,double)", "contiguous(16,double)", large_type};
  for (int round = 0; round < rounds; ++round)
    for (const char* type : types) {
      TypedData out = outgoing(type, 1, world_rank()), in = incoming(type, 1);
      MPI_Request send;
      MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &send);
      MPI_Recv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      if (round % 25 == 0) in.expect(outgoing(type, 1, peer()).packed());
    }
}

MPI_CASE(isend_without_a_machine_profile) {
  // One run uses a profile that does not exist, see CMakeLists.txt.
  TypedData out = outgoing("vector(512,3,7,byte)", 1, world_rank()), in = incoming("vector(512,3,7,byte)", 1);
  MPI_Request requests[2];
  MPI_Irecv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out.address(), 1, out.type(), peer(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  in.expect(outgoing("vector(512,3,7,byte)", 1, peer()).packed());
}

MPI_CASE(many_messages_leave_no_memory_behind) {
  TypedData out = outgoing("vector(8,1,2,double)", 1, world_rank()), in = incoming("vector(8,1,2,double)", 1);
  // In batches, so that the latency between the processes does not dominate the run time.
  constexpr int batch = 50;
  const auto exchange = [&](int count) {
    std::array<MPI_Request, 2 * batch> requests;
    for (int i = 0; i < count; i += batch) {
      for (int k = 0; k < batch; ++k) {
        MPI_Irecv(in.address(), 1, in.type(), peer(), k, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(2 * k)]);
        MPI_Isend(out.address(), 1, out.type(), peer(), k, MPI_COMM_WORLD,
                  &requests[static_cast<std::size_t>(2 * k + 1)]);
      }
      MPI_Waitall(2 * batch, requests.data(), MPI_STATUSES_IGNORE);
    }
  };
  const auto [messages, limit] = many();
  exchange(messages / 10);
  const std::int64_t before = resident_kib();
  exchange(messages);
  in.expect(outgoing("vector(8,1,2,double)", 1, peer()).packed());
  const std::int64_t grown = resident_kib() - before;
  if (grown > limit) fail_check(__FILE__, __LINE__, "resident memory grew by " + std::to_string(grown) + " KiB");
}

MPI_CASE(many_types_leave_no_memory_behind) {
  const auto cycle = [](int count) {
    const int me = world_rank();
    for (int i = 0; i < count; ++i) {
      const std::string type = "vector(" + std::to_string(2 + i % 500) + ",1,2,short)";
      TypedData out(type, 1, 1), in(type, 1, 2);
      MPI_Sendrecv(out.address(), 1, out.type(), me, 1, in.address(), 1, in.type(), me, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    }
  };
  cycle(2000);
  const std::int64_t before = resident_kib();
  cycle(10000);
  const std::int64_t grown = resident_kib() - before;
  if (grown > 4096) fail_check(__FILE__, __LINE__, "resident memory grew by " + std::to_string(grown) + " KiB");
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
