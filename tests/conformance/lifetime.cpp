// SPDX-License-Identifier: Apache-2.0
// Types are freed, and their handle values reused, while messages that use them are pending.
#include <array>
#include <memory>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

MPI_CASE(type_freed_before_wait) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(in.address(), 1, in.type(), ring.previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.address(), 1, out.type(), ring.next, 1, MPI_COMM_WORLD, &requests[1]);
    in.free_type();
    out.free_type();
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

MPI_CASE(handle_reused_while_a_message_is_in_flight) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Request receive;
    MPI_Irecv(in.address(), 1, in.type(), ring.previous, 1, MPI_COMM_WORLD, &receive);
    in.free_type();
    // Probably gets the same handle value.
    CommittedType other("hvector(3,1,100,char)");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(out.address(), 1, out.type(), ring.next, 1, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

MPI_CASE(handle_reused_for_another_type) {
  const Ring ring;
  for (int i = 0; i < 300; ++i) {
    const std::string type = i % 3 == 0   ? "vector(" + std::to_string(3 + i) + ",1,2,int)"
                             : i % 3 == 1 ? "contiguous(" + std::to_string(3 + i) + ",double)"
                                          : "hvector(" + std::to_string(3 + i) + ",1,-9,byte)";
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 1, in.address(), 1, in.type(), ring.previous, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

MPI_CASE(part_of_a_type_freed_before_it_is_used) {
  const Ring ring;
  MPI_Datatype inner, outer;
  MPI_Type_vector(4, 1, 2, MPI_INT, &inner);
  MPI_Type_create_hvector(3, 1, 64, inner, &outer);
  MPI_Type_free(&inner);
  MPI_Type_commit(&outer);
  TypedData out = outgoing("hvector(3,1,64,vector(4,1,2,int))", 1, ring.rank),
            in = incoming("hvector(3,1,64,vector(4,1,2,int))", 1);
  MPI_Sendrecv(out.address(), 1, outer, ring.next, 1, in.address(), 1, outer, ring.previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  in.expect(outgoing("hvector(3,1,64,vector(4,1,2,int))", 1, ring.previous).packed());
  MPI_Type_free(&outer);
}

MPI_CASE(committed_twice) {
  const Ring ring;
  TypedData out = outgoing(list_type, 1, ring.rank), in = incoming(list_type, 1);
  MPI_Datatype type = in.type();
  MPI_Type_commit(&type);
  CHECK(type == in.type());
  MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 1, in.address(), 1, in.type(), ring.previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  in.expect(outgoing(list_type, 1, ring.previous).packed());
}

MPI_CASE(duplicate_outlives_the_original) {
  const Ring ring;
  TypedData out = outgoing(record_type, 1, ring.rank), in = incoming(record_type, 1);
  MPI_Datatype copy;
  MPI_Type_dup(in.type(), &copy);  // a duplicate of a committed type is committed
  in.free_type();
  MPI_Sendrecv(out.address(), 1, out.type(), ring.next, 1, in.address(), 1, copy, ring.previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  in.expect(outgoing(record_type, 1, ring.previous).packed());
  MPI_Type_free(&copy);
}

MPI_CASE(many_types_alive) {
  // Fewer types than the number at which MPICH 4.0.2 packs contiguous types wrongly.
  const Ring ring;
  std::vector<std::unique_ptr<CommittedType>> alive;
  for (int i = 0; i < 200; ++i)
    alive.push_back(std::make_unique<CommittedType>("vector(" + std::to_string(2 + i) + ",1,2,double)"));
  for (int i = 0; i < 200; i += 13) {
    const std::string text = "vector(" + std::to_string(2 + i) + ",1,2,double)";
    TypedData out = outgoing(text, 1, ring.rank), in = incoming(text, 1);
    const MPI_Datatype type = *alive[static_cast<std::size_t>(i)];
    MPI_Sendrecv(out.address(), 1, type, ring.next, 1, in.address(), 1, type, ring.previous, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    in.expect(outgoing(text, 1, ring.previous).packed());
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
