// SPDX-License-Identifier: Apache-2.0
// An invalid call returns the MPI library's error class through the communicator's error handler, and the job
// continues. Two ranks. Without the preload library the cases check the behavior of the MPI library.
#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

int handler_calls = 0, handler_class = MPI_SUCCESS;
MPI_Comm handler_comm = MPI_COMM_NULL;

void handler(MPI_Comm* comm, int* code, ...) {
  ++handler_calls;
  handler_comm = *comm;
  MPI_Error_class(*code, &handler_class);
}

int peer() { return 1 - world_rank(); }

}  // namespace

MPI_CASE(negative_count) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  TypedData data = incoming(small_type, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQUAL(MPI_ERR_COUNT, error_class(MPI_Send(data.address(), -1, data.type(), peer(), 0, MPI_COMM_WORLD)));
  CHECK_EQUAL(MPI_ERR_COUNT,
              error_class(MPI_Recv(data.address(), -1, data.type(), peer(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
  CHECK_EQUAL(MPI_ERR_COUNT,
              error_class(MPI_Isend(data.address(), -1, data.type(), peer(), 0, MPI_COMM_WORLD, &request)));
  CHECK_EQUAL(MPI_ERR_COUNT,
              error_class(MPI_Irecv(data.address(), -1, data.type(), peer(), 0, MPI_COMM_WORLD, &request)));
  CHECK_EQUAL(MPI_ERR_COUNT,
              error_class(MPI_Send_init(data.address(), -1, data.type(), peer(), 0, MPI_COMM_WORLD, &request)));
  data.expect_untouched();
}

MPI_CASE(invalid_rank) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  TypedData data = incoming(small_type, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  for (const int rank : {world_size(), -7}) {
    CHECK_EQUAL(MPI_ERR_RANK, error_class(MPI_Send(data.address(), 1, data.type(), rank, 0, MPI_COMM_WORLD)));
    CHECK_EQUAL(MPI_ERR_RANK,
                error_class(MPI_Recv(data.address(), 1, data.type(), rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    CHECK_EQUAL(MPI_ERR_RANK,
                error_class(MPI_Isend(data.address(), 1, data.type(), rank, 0, MPI_COMM_WORLD, &request)));
    CHECK_EQUAL(MPI_ERR_RANK,
                error_class(MPI_Irecv(data.address(), 1, data.type(), rank, 0, MPI_COMM_WORLD, &request)));
  }
  data.expect_untouched();
}

MPI_CASE(invalid_tag) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  TypedData data = incoming(small_type, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQUAL(MPI_ERR_TAG, error_class(MPI_Send(data.address(), 1, data.type(), peer(), -5, MPI_COMM_WORLD)));
  CHECK_EQUAL(MPI_ERR_TAG,
              error_class(MPI_Isend(data.address(), 1, data.type(), peer(), -5, MPI_COMM_WORLD, &request)));
  CHECK_EQUAL(MPI_ERR_TAG,
              error_class(MPI_Recv(data.address(), 1, data.type(), peer(), -5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
}

MPI_CASE(null_communicator) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  TypedData data = incoming(small_type, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Send(data.address(), 1, data.type(), peer(), 0, MPI_COMM_NULL)));
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Isend(data.address(), 1, data.type(), peer(), 0, MPI_COMM_NULL, &request)));
  CHECK_EQUAL(MPI_ERR_COMM,
              error_class(MPI_Recv(data.address(), 1, data.type(), peer(), 0, MPI_COMM_NULL, MPI_STATUS_IGNORE)));
}

MPI_CASE(type_not_committed) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  std::vector<double> data(100);
  MPI_Datatype type = build_type(type_from("vector(10,1,2,double)"));
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Send(data.data(), 1, type, peer(), 0, MPI_COMM_WORLD)));
  CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Isend(data.data(), 1, type, peer(), 0, MPI_COMM_WORLD, &request)));
  CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Recv(data.data(), 1, type, peer(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
  MPI_Type_free(&type);
}

MPI_CASE(null_type) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  std::vector<double> data(100);
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_EQUAL(MPI_ERR_TYPE, error_class(MPI_Send(data.data(), 1, MPI_DATATYPE_NULL, peer(), 0, MPI_COMM_WORLD)));
  CHECK_EQUAL(MPI_ERR_TYPE,
              error_class(MPI_Irecv(data.data(), 1, MPI_DATATYPE_NULL, peer(), 0, MPI_COMM_WORLD, &request)));
}

MPI_CASE(truncation) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 3, world_rank()), in = incoming(type, 2);
    MPI_Request requests[2];
    MPI_Irecv(in.address(), 2, in.type(), peer(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.address(), 3, out.type(), peer(), 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Status status;
    CHECK_EQUAL(MPI_ERR_TRUNCATE, error_class(MPI_Wait(&requests[0], &status)));
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    // The contents of the two elements are undefined; the next message must arrive normally.
    TypedData next = incoming(type, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv(out.address(), 3, out.type(), peer(), 2, next.address(), 3, next.type(), peer(), 2, MPI_COMM_WORLD,
                 &status);
    check_status(status, peer(), 2, next.type(), 3);
    next.expect(outgoing(type, 3, peer()).packed());
  }
}

MPI_CASE(truncation_in_waitall) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  TypedData out = outgoing(small_type, 3, world_rank()), in = incoming(small_type, 2), good = incoming(small_type, 3);
  MPI_Request requests[4];
  MPI_Status statuses[4];
  MPI_Irecv(in.address(), 2, in.type(), peer(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(good.address(), 3, good.type(), peer(), 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out.address(), 3, out.type(), peer(), 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(out.address(), 3, out.type(), peer(), 2, MPI_COMM_WORLD, &requests[3]);
  CHECK_EQUAL(MPI_ERR_IN_STATUS, error_class(MPI_Waitall(4, requests, statuses)));
  CHECK_EQUAL(MPI_ERR_TRUNCATE, error_class(statuses[0].MPI_ERROR));
  for (int i = 1; i < 4; ++i) {
    if (statuses[i].MPI_ERROR == MPI_ERR_PENDING)
      CHECK_EQUAL(MPI_SUCCESS, MPI_Wait(&requests[i], &statuses[i]));
    else
      CHECK_EQUAL(MPI_SUCCESS, statuses[i].MPI_ERROR);
  }
  good.expect(outgoing(small_type, 3, peer()).packed());
}

MPI_CASE(truncated_blocking_receive) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  TypedData out = outgoing(list_type, 2, world_rank()), in = incoming(list_type, 1);
  MPI_Request send;
  MPI_Isend(out.address(), 2, out.type(), peer(), 1, MPI_COMM_WORLD, &send);
  MPI_Status status;
  CHECK_EQUAL(MPI_ERR_TRUNCATE, error_class(MPI_Recv(in.address(), 1, in.type(), peer(), 1, MPI_COMM_WORLD, &status)));
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

MPI_CASE(handler_of_the_communicator_is_called_once) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  TypedData out = outgoing(small_type, 3, world_rank()), in = incoming(small_type, 2);
  // A blocking receive, because MPICH 4.0.2 raises an error that MPI_Wait finds on MPI_COMM_WORLD.
  MPI_Request send;
  handler_calls = 0;
  MPI_Isend(out.address(), 3, out.type(), peer(), 1, comm, &send);
  MPI_Recv(in.address(), 2, in.type(), peer(), 1, comm, MPI_STATUS_IGNORE);
  CHECK_EQUAL(1, handler_calls);
  CHECK_EQUAL(MPI_ERR_TRUNCATE, handler_class);
  CHECK(handler_comm == comm);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Send(out.address(), -1, out.type(), peer(), 1, comm);
  CHECK_EQUAL(2, handler_calls);
  CHECK_EQUAL(MPI_ERR_COUNT, handler_class);
  MPI_Errhandler_free(&own);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
