// SPDX-License-Identifier: Apache-2.0
// Probes, and matched receives of probed messages.
#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

/// Sends a message to the next rank while `receive` receives the one from the previous rank.
template <class Receive>
void while_sending(const char* type, Receive&& receive) {
  const Ring ring;
  TypedData out = outgoing(type, 2, ring.rank);
  MPI_Request send;
  MPI_Isend(out.address(), 2, out.type(), ring.next, 21, MPI_COMM_WORLD, &send);
  TypedData in = incoming(type, 2);
  MPI_Status status = {};  // MPI_Probe of MPICH 4.0.2 does not set the cancelled flag
  receive(ring, in, status);
  check_status(status, ring.previous, 21, in.type(), 2);
  in.expect(outgoing(type, 2, ring.previous).packed());
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

}  // namespace

MPI_CASE(probe_and_receive) {
  for (const char* type : every_type)
    while_sending(type, [](const Ring& ring, TypedData& in, MPI_Status& status) {
      MPI_Probe(MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &status);
      check_status(status, ring.previous, 21, in.type(), 2);
      MPI_Recv(in.address(), 2, in.type(), status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
    });
}

MPI_CASE(iprobe_and_receive) {
  for (const char* type : every_type)
    while_sending(type, [](const Ring& ring, TypedData& in, MPI_Status& status) {
      for (int there = 0; !there;) MPI_Iprobe(ring.previous, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
      check_status(status, ring.previous, 21, in.type(), 2);
      MPI_Recv(in.address(), 2, in.type(), ring.previous, 21, MPI_COMM_WORLD, &status);
    });
}

MPI_CASE(mprobe_and_mrecv) {
  for (const char* type : every_type)
    while_sending(type, [](const Ring& ring, TypedData& in, MPI_Status& status) {
      MPI_Message message;
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
      check_status(status, ring.previous, 21, in.type(), 2);
      MPI_Mrecv(in.address(), 2, in.type(), &message, &status);
      CHECK(message == MPI_MESSAGE_NULL);
    });
}

MPI_CASE(improbe_and_imrecv) {
  for (const char* type : every_type)
    while_sending(type, [](const Ring& ring, TypedData& in, MPI_Status& status) {
      MPI_Message message;
      for (int there = 0; !there;) MPI_Improbe(ring.previous, 21, MPI_COMM_WORLD, &there, &message, &status);
      MPI_Request request;
      MPI_Imrecv(in.address(), 2, in.type(), &message, &request);
      CHECK(message == MPI_MESSAGE_NULL);
      MPI_Wait(&request, &status);
    });
}

MPI_CASE(mrecv_from_proc_null) {
  TypedData in = incoming(small_type, 2);
  MPI_Message message;
  MPI_Status status;
  MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(in.address(), 2, in.type(), &message, &status);
  check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, in.type(), 0);
  in.expect_untouched();
}

MPI_CASE(mrecv_of_a_short_message) {
  const Ring ring;
  TypedData out = outgoing(list_type, 1, ring.rank), in = incoming(list_type, 4);
  MPI_Request send;
  MPI_Isend(out.address(), 1, out.type(), ring.next, 21, MPI_COMM_WORLD, &send);
  MPI_Message message;
  MPI_Status status;
  MPI_Mprobe(ring.previous, 21, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(in.address(), 4, in.type(), &message, &status);
  check_status(status, ring.previous, 21, in.type(), 1);
  in.expect(outgoing(list_type, 1, ring.previous).packed());
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
