// SPDX-License-Identifier: Apache-2.0
// An invalid collective call calls the error handler once, with the right communicator and error class. MPICH 4.0.2
// raises errors that belong to no communicator on MPI_COMM_WORLD.
#include <cstdint>
#include <vector>

#include "tests/transparency/under_way.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

int calls_of_world = 0, calls_of_own = 0, last_class = MPI_SUCCESS;

void handler_of_world(MPI_Comm*, int* code, ...) {
  ++calls_of_world;
  MPI_Error_class(*code, &last_class);
}

void handler_of_own(MPI_Comm*, int* code, ...) {
  ++calls_of_own;
  MPI_Error_class(*code, &last_class);
}

/// A duplicate of MPI_COMM_WORLD, error handlers on both communicators, and stale handles.
struct Handlers {
  Handlers() {
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm other;
    MPI_Comm_dup(own, &other);
    freed_comm = other;
    MPI_Comm_free(&other);
    MPI_Errhandler world_handler, own_handler;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_create_errhandler(handler_of_world, &world_handler);
    MPI_Comm_create_errhandler(handler_of_own, &own_handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world_handler);
    MPI_Comm_set_errhandler(own, own_handler);
    MPI_Errhandler_free(&world_handler);
    MPI_Errhandler_free(&own_handler);
  }
  ~Handlers() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Comm_free(&own);
  }
  /// Checks, after a call that returned `code`, the error class and that exactly the expected handler was called once.
  void expect(int expected, bool by_own, int code, int line) {
    const auto check = [line](const char* what, int right, int got) {
      if (right != got)
        fail_check(__FILE__, line,
                   std::string(what) + ": expected " + std::to_string(right) + ", got " + std::to_string(got));
    };
    check("class returned", expected, error_class(code));
    check("class told", expected, last_class);
    check("calls of the communicator's handler", by_own ? 1 : 0, calls_of_own);
    check("calls of MPI_COMM_WORLD's handler", by_own ? 0 : 1, calls_of_world);
    calls_of_own = calls_of_world = 0;
    last_class = MPI_SUCCESS;
  }
  MPI_Comm own, freed_comm;
  MPI_Errhandler before;
  int x[4096] = {}, y[4096 * 8] = {};
  MPI_Request request = MPI_REQUEST_NULL;
};

}  // namespace

#define BY_OWN(expected, call) h.expect(expected, true, call, __LINE__)
#define BY_WORLD(expected, call) h.expect(expected, false, call, __LINE__)

MPI_CASE(bcast) {
  Handlers h;
  BY_OWN(MPI_ERR_ROOT, MPI_Bcast(h.x, 1024, MPI_INT, world_size() + 3, h.own));
  BY_OWN(MPI_ERR_COUNT, MPI_Bcast(h.x, -1, MPI_INT, 0, h.own));
  BY_OWN(MPI_ERR_TYPE, MPI_Bcast(h.x, 1, MPI_DATATYPE_NULL, 0, h.own));
  BY_OWN(MPI_ERR_ROOT, MPI_Ibcast(h.x, 1024, MPI_INT, world_size() + 3, h.own, &h.request));
  BY_OWN(MPI_ERR_COUNT, MPI_Ibcast(h.x, -1, MPI_INT, 0, h.own, &h.request));
}

MPI_CASE(invalid_communicator) {
  Handlers h;
  BY_WORLD(MPI_ERR_COMM, MPI_Bcast(h.x, 1, MPI_INT, 0, MPI_COMM_NULL));
  BY_WORLD(MPI_ERR_COMM, MPI_Bcast(h.x, 1, MPI_INT, 0, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Allreduce(h.x, h.y, 1024, MPI_INT, MPI_SUM, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Allgather(h.x, 1, MPI_INT, h.y, 1, MPI_INT, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Iallgather(h.x, 1, MPI_INT, h.y, 1, MPI_INT, h.freed_comm, &h.request));
  BY_WORLD(MPI_ERR_COMM, MPI_Alltoall(h.x, 1, MPI_INT, h.y, 1, MPI_INT, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Gather(h.x, 1, MPI_INT, h.y, 1, MPI_INT, 0, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Send(h.x, 1, MPI_INT, 0, 0, h.freed_comm));
  BY_WORLD(MPI_ERR_COMM, MPI_Isend(h.x, 1, MPI_INT, 0, 0, h.freed_comm, &h.request));
  BY_WORLD(MPI_ERR_COMM, MPI_Recv(h.x, 1, MPI_INT, 0, 0, h.freed_comm, MPI_STATUS_IGNORE));
  BY_WORLD(MPI_ERR_COMM, MPI_Barrier(h.freed_comm));
}

MPI_CASE(allreduce) {
  Handlers h;
  // A freed operation is not tested: MPICH 4.0.2 may not detect it.
  BY_OWN(MPI_ERR_OP, MPI_Allreduce(h.x, h.y, 1024, MPI_INT, MPI_OP_NULL, h.own));
  BY_OWN(MPI_ERR_BUFFER, MPI_Allreduce(h.x, h.x, 1024, MPI_INT, MPI_SUM, h.own));
  BY_OWN(MPI_ERR_OP, MPI_Allreduce(h.x, h.y, 1024, MPI_DOUBLE, MPI_BAND, h.own));
  BY_OWN(MPI_ERR_OP, MPI_Iallreduce(h.x, h.y, 1024, MPI_INT, MPI_OP_NULL, h.own, &h.request));
}

MPI_CASE(allgather) {
  Handlers h;
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  BY_OWN(MPI_ERR_BUFFER, MPI_Allgather(h.x, 1024, MPI_INT, nullptr, 1024, MPI_INT, h.own));
  BY_OWN(MPI_ERR_TYPE, MPI_Allgather(h.x, 1, uncommitted, h.y, 1, uncommitted, h.own));
  BY_OWN(MPI_ERR_ARG, MPI_Iallgather(h.x, 1024, MPI_INT, h.y, 1024, MPI_INT, h.own, nullptr));
  MPI_Type_free(&uncommitted);
}

MPI_CASE(reductions_and_rooted) {
  Handlers h;
  const int counts[8] = {-1, 1, 1, 1, 1, 1, 1, 1};
  BY_OWN(MPI_ERR_ROOT, MPI_Reduce(h.x, h.y, 1024, MPI_INT, MPI_SUM, -7, h.own));
  BY_OWN(MPI_ERR_COUNT, MPI_Reduce_scatter(h.x, h.y, counts, MPI_INT, MPI_SUM, h.own));
  BY_OWN(MPI_ERR_ROOT, MPI_Gather(h.x, 1, MPI_INT, h.y, 1, MPI_INT, 99, h.own));
  BY_OWN(MPI_ERR_COUNT, MPI_Alltoall(h.x, -1, MPI_INT, h.y, 1, MPI_INT, h.own));
}

MPI_CASE(handles_that_can_not_be_freed) {
  Handlers h;
  MPI_Comm no_comm = MPI_COMM_NULL;
  MPI_Datatype no_type = MPI_DATATYPE_NULL, integer = MPI_INT;
  BY_WORLD(MPI_ERR_COMM, MPI_Comm_free(&no_comm));
  BY_WORLD(MPI_ERR_TYPE, MPI_Type_free(&no_type));
  BY_WORLD(MPI_ERR_TYPE, MPI_Type_free(&integer));
}

MPI_CASE(truncated_receive_while_a_collective_is_pending) {
  Handlers h;
  if (world_rank() == 0) {
    for (int i = 0; i < 2; ++i) MPI_Send(h.x, 10, MPI_INT, 1, 5, h.own);
    MPI_Recv(nullptr, 0, MPI_INT, 1, 6, h.own, MPI_STATUS_IGNORE);
  }
  Gather gather(MPI_COMM_WORLD);  // pending on rank 1: rank 0 starts it after the reply
  if (world_rank() == 1) {
    BY_OWN(MPI_ERR_TRUNCATE, MPI_Recv(h.y, 9, MPI_INT, 0, 5, h.own, MPI_STATUS_IGNORE));
    BY_OWN(MPI_ERR_TRUNCATE, PMPI_Recv(h.y, 9, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, h.own, MPI_STATUS_IGNORE));
    MPI_Send(nullptr, 0, MPI_INT, 0, 6, h.own);
  }
  gather.wait();
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
