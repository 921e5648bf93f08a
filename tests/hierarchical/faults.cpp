// SPDX-License-Identifier: Apache-2.0
// Collectives that complete with an error of Bestride because an allocation fails on all ranks
// (BESTRIDE_FORCE=fail=operation): every completion function returns the error for that request only, and the
// communicator's error handler is called once.
#include <string>
#include <vector>

#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

int handled = 0, handled_class = MPI_SUCCESS;
void handle(MPI_Comm*, int* error, ...) {
  ++handled;
  handled_class = error_class(*error);
}

/// The error classes of a completion call and of its two requests, of which the first fails. A request has the class of
/// the call if the call does not return one per request.
struct Completed {
  int of_call = MPI_SUCCESS, of_first = MPI_SUCCESS, of_second = MPI_SUCCESS;
};
int class_of(int error) { return error == MPI_SUCCESS ? MPI_SUCCESS : error_class(error); }
/// Waits for the second request if the call left it pending, which MPI allows after an error.
Completed by_statuses(int error, const MPI_Status* statuses, MPI_Request* requests) {
  if (class_of(error) != MPI_ERR_IN_STATUS) return {class_of(error), class_of(error), class_of(error)};
  Completed done{MPI_ERR_IN_STATUS, class_of(statuses[0].MPI_ERROR), class_of(statuses[1].MPI_ERROR)};
  if (done.of_second == MPI_ERR_PENDING) done.of_second = class_of(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  return done;
}
Completed wait(MPI_Request* requests) {
  Completed done;
  done.of_call = done.of_first = class_of(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  done.of_second = class_of(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  return done;
}
Completed test(MPI_Request* requests) {
  Completed done;
  for (int flag = 0; !flag && done.of_call == MPI_SUCCESS;)
    done.of_call = class_of(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
  done.of_first = done.of_call;
  done.of_second = class_of(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  return done;
}
Completed one_by_one(MPI_Request* requests, bool waits) {
  Completed done;
  for (int left = 2; left > 0;) {
    int index = MPI_UNDEFINED, flag = 1;
    const int error = waits ? MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE)
                            : MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    if (index == MPI_UNDEFINED) continue;
    if (error != MPI_SUCCESS) done.of_call = class_of(error);
    (index == 0 ? done.of_first : done.of_second) = class_of(error);
    --left;
  }
  return done;
}
Completed waitany(MPI_Request* requests) { return one_by_one(requests, true); }
Completed testany(MPI_Request* requests) { return one_by_one(requests, false); }
Completed waitall(MPI_Request* requests) {
  MPI_Status statuses[2];
  return by_statuses(MPI_Waitall(2, requests, statuses), statuses, requests);
}
Completed testall(MPI_Request* requests) {
  MPI_Status statuses[2];
  int error = MPI_SUCCESS;
  for (int flag = 0; !flag && error == MPI_SUCCESS;) error = MPI_Testall(2, requests, &flag, statuses);
  return by_statuses(error, statuses, requests);
}
Completed some(MPI_Request* requests, bool waits) {
  Completed done;
  for (int left = 2; left > 0;) {
    MPI_Status statuses[2];
    int count = 0, indices[2];
    const int error = waits ? MPI_Waitsome(2, requests, &count, indices, statuses)
                            : MPI_Testsome(2, requests, &count, indices, statuses);
    if (error != MPI_SUCCESS) done.of_call = class_of(error);
    for (int i = 0; i < count; ++i)
      (indices[i] == 0 ? done.of_first : done.of_second) =
          class_of(error) == MPI_ERR_IN_STATUS ? class_of(statuses[i].MPI_ERROR) : class_of(error);
    left -= count;
  }
  return done;
}
Completed waitsome(MPI_Request* requests) { return some(requests, true); }
Completed testsome(MPI_Request* requests) { return some(requests, false); }

constexpr struct {
  const char* name;
  Completed (*complete)(MPI_Request*);
  bool many;
} procedures[] = {{"Wait", wait, false},        {"Test", test, false},       {"Waitany", waitany, false},
                  {"Testany", testany, false},  {"Waitall", waitall, true},  {"Testall", testall, true},
                  {"Waitsome", waitsome, true}, {"Testsome", testsome, true}};

/// On one node the first two calls of a communicator in each form go to the library.
void make_first_calls(MPI_Comm comm) {
  if (group_of("", comm, true).several_nodes) return;
  long mine = 0;
  std::vector<long> all(static_cast<std::size_t>(world_size()));
  for (int time = 0; time < 2; ++time) {
    MPI_Request request;
    MPI_Allgather(&mine, 1, MPI_LONG, all.data(), 1, MPI_LONG, comm);
    MPI_Iallgather(&mine, 1, MPI_LONG, all.data(), 1, MPI_LONG, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

}  // namespace

/// The second request is a message of the rank to itself.
MPI_CASE(every_completion_function_returns_the_error) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  const int ranks = world_size(), rank = world_rank();
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  make_first_calls(comm);
  for (const Wait form : {Wait::nonblocking, Wait::persistent})
    for (const auto& procedure : procedures) {
      const std::vector<long> given(4, rank);
      std::vector<long> got(given.size() * static_cast<std::size_t>(ranks), -1);
      Arguments a;
      a.out = given.data();
      a.out_count = a.in_count = 4;
      a.out_type = a.in_type = MPI_LONG;
      a.in = got.data();
      a.comm = comm;
      handled = 0;
      MPI_Request requests[2];
      int sent = rank, received = -1;
      CHECK_EQUAL(MPI_SUCCESS, call(What::gather, {form, false, false}, a, &requests[0]));
      MPI_Request persistent = requests[0];
      if (form == Wait::persistent) CHECK_EQUAL(MPI_SUCCESS, MPI_Start(&requests[0]));
      MPI_Irecv(&received, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]);
      MPI_Send(&sent, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
      const Completed done = procedure.complete(requests);
      const std::string where = std::string(form == Wait::persistent ? "persistent, " : "") + procedure.name;
      const auto check = [&](const char* what, int right, int is) {
        if (right != is)
          fail_check(__FILE__, __LINE__,
                     where + ": " + what + ": expected " + std::to_string(right) + ", got " + std::to_string(is));
      };
      check("class of the collective", MPI_ERR_OTHER, done.of_first);
      check("class of the message", MPI_SUCCESS, done.of_second);
      check("class of the call", procedure.many ? MPI_ERR_IN_STATUS : MPI_ERR_OTHER, done.of_call);
      check("calls of the error handler", 1, handled);
      check("class in the error handler", procedure.many ? MPI_ERR_IN_STATUS : MPI_ERR_OTHER, handled_class);
      check("the message", rank, received);
      if (form == Wait::persistent) MPI_Request_free(&persistent);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

MPI_CASE(blocking) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  make_first_calls(MPI_COMM_WORLD);
  constexpr int count = 4096;  // a shorter call has no operation that could fail
  std::vector<long> mine(count, world_rank()), all(static_cast<std::size_t>(count * world_size()), -1);
  const int error = MPI_Allgather(mine.data(), count, MPI_LONG, all.data(), count, MPI_LONG, MPI_COMM_WORLD);
  CHECK_EQUAL(MPI_ERR_OTHER, class_of(error));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
