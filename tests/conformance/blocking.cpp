// SPDX-License-Identifier: Apache-2.0
// Blocking sends and receives of derived types: statuses, short messages, MPI_PROC_NULL, MPI_ANY_SOURCE and the send
// modes.
#include <cstdlib>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

/// Odd ranks receive first, so that no buffering is needed. If the number of ranks is odd, each rank first posts its
/// receive.
void send_round(Send send, const char* type, int count = 2) {
  const Ring ring;
  TypedData out = outgoing(type, count, ring.rank), in = incoming(type, count);
  MPI_Status status;
  if (ring.size % 2 == 0) {
    if (ring.rank % 2 == 0) send(out.address(), out.count(), out.type(), ring.next, 11, MPI_COMM_WORLD);
    MPI_Recv(in.address(), in.count(), in.type(), ring.previous, 11, MPI_COMM_WORLD, &status);
    if (ring.rank % 2 == 1) send(out.address(), out.count(), out.type(), ring.next, 11, MPI_COMM_WORLD);
  } else {
    MPI_Request request;
    MPI_Irecv(in.address(), in.count(), in.type(), ring.previous, 11, MPI_COMM_WORLD, &request);
    send(out.address(), out.count(), out.type(), ring.next, 11, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
  }
  check_status(status, ring.previous, 11, in.type(), count);
  in.expect(outgoing(type, count, ring.previous).packed());
  out.expect_untouched();
}

}  // namespace

MPI_CASE(send_and_receive) {
  for (const char* type : every_type) send_round(MPI_Send, type);
}

MPI_CASE(synchronous_send) {
  for (const char* type : every_type) send_round(MPI_Ssend, type);
}

MPI_CASE(buffered_send) {
  const std::size_t size = 4 << 20;
  void* attached = std::malloc(size);
  MPI_Buffer_attach(attached, static_cast<int>(size));
  for (const char* type : every_type) send_round(MPI_Bsend, type);
  void* detached = nullptr;
  int detached_size = 0;
  MPI_Buffer_detach(&detached, &detached_size);
  CHECK(detached == attached);
  CHECK_EQUAL(static_cast<int>(size), detached_size);
  std::free(attached);
}

MPI_CASE(ready_send) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Request request;
    MPI_Irecv(in.address(), in.count(), in.type(), ring.previous, 2, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(out.address(), out.count(), out.type(), ring.next, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

MPI_CASE(status_ignored) {
  const Ring ring;
  TypedData out = outgoing(list_type, 3, ring.rank), in = incoming(list_type, 3);
  MPI_Sendrecv(out.address(), out.count(), out.type(), ring.next, 0, in.address(), in.count(), in.type(), ring.previous,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  in.expect(outgoing(list_type, 3, ring.previous).packed());
}

MPI_CASE(sender_and_receiver_build_the_type_differently) {
  const Ring ring;
  TypedData out = outgoing("contiguous(900,double)", 1, ring.rank), in = incoming("vector(450,1,3,double)", 2);
  MPI_Status status;
  MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 4, in.address(), 2, in.type(), ring.previous, 4, MPI_COMM_WORLD,
               &status);
  check_status(status, ring.previous, 4, in.type(), 2);
  check_status(status, ring.previous, 4, MPI_DOUBLE, 900);
  in.expect(outgoing("contiguous(900,double)", 1, ring.previous).packed());
  TypedData back = incoming("contiguous(900,double)", 1), strided = outgoing("vector(450,1,3,double)", 2, ring.rank);
  MPI_Sendrecv(strided.address(), 2, strided.type(), ring.next, 5, back.address(), 900, MPI_DOUBLE, ring.previous, 5,
               MPI_COMM_WORLD, &status);
  back.expect(outgoing("vector(450,1,3,double)", 2, ring.previous).packed());
}

MPI_CASE(long_records) {
  // Many fragments of records whose members have several sizes, with different datatypes on the two sides. If only one
  // side is packed by the preload library, the MPI library on the other side must be able to handle the message.
  const Ring ring;
  const char* array_of_structs = "contiguous(5000,resized(0,40,struct([1,1,3],[0,8,17],[double,int,char])))";
  const char* dense = "contiguous(5000,resized(0,16,struct([1,1,3],[0,8,12],[double,int,char])))";
  const char* one_by_one = "resized(0,48,struct([1,1,3],[24,8,40],[double,int,char]))";
  for (const char* from : {array_of_structs, dense})
    for (const char* to : {array_of_structs, dense, one_by_one}) {
      const int count = to == one_by_one ? 5000 : 1;
      TypedData out = outgoing(from, 1, ring.rank), in = incoming(to, count);
      MPI_Status status;
      MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 6, in.address(), count, in.type(), ring.previous, 6,
                   MPI_COMM_WORLD, &status);
      check_status(status, ring.previous, 6, in.type(), count);
      in.expect(outgoing(from, 1, ring.previous).packed());
    }
}

MPI_CASE(short_message) {
  const Ring ring;
  // The buffer has eight elements; three and a part of a fourth arrive. The rest stays unchanged.
  const char* element = "vector(5,1,2,double)";
  TypedData out = outgoing("double", 17, ring.rank), in = incoming(element, 8);
  MPI_Status status;
  MPI_Sendrecv(out.address(), 17, MPI_DOUBLE, ring.next, 6, in.address(), in.count(), in.type(), ring.previous, 6,
               MPI_COMM_WORLD, &status);
  int count = 0, elements = 0;
  MPI_Get_count(&status, in.type(), &count);
  CHECK_EQUAL(MPI_UNDEFINED, count);
  MPI_Get_elements(&status, in.type(), &elements);
  CHECK_EQUAL(17, elements);
  in.expect(outgoing("double", 17, ring.previous).packed());
}

MPI_CASE(short_message_of_whole_elements) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 5);
    MPI_Status status;
    MPI_Sendrecv(out.address(), 2, out.type(), ring.next, 6, in.address(), 5, in.type(), ring.previous, 6,
                 MPI_COMM_WORLD, &status);
    check_status(status, ring.previous, 6, in.type(), 2);
    in.expect(outgoing(type, 2, ring.previous).packed());
  }
}

MPI_CASE(empty_message) {
  const Ring ring;
  TypedData out = outgoing(small_type, 0, ring.rank), in = incoming(small_type, 4);
  MPI_Status status;
  MPI_Sendrecv(out.address(), 0, out.type(), ring.next, 6, in.address(), 4, in.type(), ring.previous, 6, MPI_COMM_WORLD,
               &status);
  check_status(status, ring.previous, 6, in.type(), 0);
  in.expect_untouched();
}

MPI_CASE(receive_from_proc_null) {
  for (const char* type : every_type) {
    TypedData in = incoming(type, 2);
    MPI_Status status;
    MPI_Recv(in.address(), in.count(), in.type(), MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status);
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, in.type(), 0);
    in.expect_untouched();
    MPI_Send(in.address(), in.count(), in.type(), MPI_PROC_NULL, 7, MPI_COMM_WORLD);
    MPI_Sendrecv(in.address(), 1, in.type(), MPI_PROC_NULL, 7, in.address(), 2, in.type(), MPI_PROC_NULL, 7,
                 MPI_COMM_WORLD, &status);
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, in.type(), 0);
    in.expect_untouched();
  }
}

MPI_CASE(any_source_and_any_tag) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in.address(), in.count(), in.type(), MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Send(out.address(), out.count(), out.type(), ring.next, 40 + ring.rank, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_status(status, ring.previous, 40 + ring.previous, in.type(), 1);
    in.expect(outgoing(type, 1, ring.previous).packed());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

MPI_CASE(sendrecv_replace) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData both = outgoing(type, 2, ring.rank);
    MPI_Status status;
    MPI_Sendrecv_replace(both.address(), both.count(), both.type(), ring.next, 8, ring.previous, 8, MPI_COMM_WORLD,
                         &status);
    check_status(status, ring.previous, 8, both.type(), 2);
    both.expect(outgoing(type, 2, ring.previous).packed());
  }
}

MPI_CASE(bottom_and_absolute_addresses) {
  const Ring ring;
  TypedData out = outgoing(list_type, 1, ring.rank), in = incoming(list_type, 1);
  const auto absolute = [](TypedData& data) {
    MPI_Aint address = 0;
    MPI_Get_address(data.address(), &address);
    MPI_Datatype inner = data.type(), type = MPI_DATATYPE_NULL;
    const int one = 1;
    MPI_Type_create_struct(1, &one, &address, &inner, &type);
    MPI_Type_commit(&type);
    return type;
  };
  MPI_Datatype out_type = absolute(out), in_type = absolute(in);
  MPI_Sendrecv(MPI_BOTTOM, 1, out_type, ring.next, 9, MPI_BOTTOM, 1, in_type, ring.previous, 9, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  in.expect(outgoing(list_type, 1, ring.previous).packed());
  MPI_Type_free(&out_type);
  MPI_Type_free(&in_type);
}

MPI_CASE(packed_by_the_sender) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    Bytes packed(static_cast<std::size_t>(out.packed_size()));
    int position = 0;
    MPI_Pack(out.address(), 1, out.type(), packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_WORLD);
    MPI_Sendrecv(packed.data(), position, MPI_PACKED, ring.next, 12, in.address(), 1, in.type(), ring.previous, 12,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
