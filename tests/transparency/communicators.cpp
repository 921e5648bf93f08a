// SPDX-License-Identifier: Apache-2.0
// A communicator still works after a failed MPI_Comm_free. A new communicator with the handle value of an earlier one
// works, too. An even number of ranks.
#include "tests/support/typed_data.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

bool refuse = false;
int callbacks = 0;

int may_refuse(MPI_Comm, int, void*, void*) {
  ++callbacks;
  return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int key() {
  int value = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, may_refuse, &value, nullptr);
  callbacks = 0;
  return value;
}

/// Messages of every size, and blocking and nonblocking collectives.
void check_communicator(MPI_Comm comm) {
  const Ring ring(comm);
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 2);
    MPI_Request send;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Isend(out.address(), 2, out.type(), ring.next, 4, comm, &send));
    CHECK_EQUAL(MPI_SUCCESS, MPI_Recv(in.address(), 2, in.type(), ring.previous, 4, comm, MPI_STATUS_IGNORE));
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    in.expect(outgoing(type, 2, ring.previous).packed());
  }
  const std::size_t count = 50000;
  std::vector<int> out(count, ring.rank), in(count * static_cast<std::size_t>(ring.size)), sum(count);
  for (int round = 0; round < 2; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (round == 0)
      CHECK_EQUAL(MPI_SUCCESS, MPI_Allgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm));
    else
      CHECK_EQUAL(MPI_SUCCESS, MPI_Iallgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < ring.size; ++r) CHECK_EQUAL(r, in[static_cast<std::size_t>(r) * count + count - 1]);
    in.assign(in.size(), -1);
    CHECK_EQUAL(MPI_SUCCESS, MPI_Allreduce(out.data(), sum.data(), count, MPI_INT, MPI_SUM, comm));
    CHECK_EQUAL(ring.size * (ring.size - 1) / 2, sum[count - 1]);
    CHECK_EQUAL(MPI_SUCCESS, MPI_Bcast(sum.data(), count, MPI_INT, ring.size - 1, comm));
  }
}

}  // namespace

MPI_CASE(failed_free_then_used_then_freed) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  int callback = key();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_attr(comm, callback, nullptr);
  check_communicator(comm);
  refuse = true;
  MPI_Comm copy = comm;
  CHECK(MPI_Comm_free(&copy) != MPI_SUCCESS);
  CHECK_EQUAL(1, callbacks);
  for (int round = 0; round < 3; ++round) check_communicator(comm);
  // The second MPI_Comm_free must succeed: MPICH 4.0.2 deletes the attribute although its callback fails.
  refuse = false;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Comm_free(&comm));
  MPI_Comm_free_keyval(&callback);
}

MPI_CASE(failed_free_of_an_unused_communicator) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  int callback = key();
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
  MPI_Comm_set_attr(comm, callback, nullptr);
  refuse = true;
  MPI_Comm copy = comm;
  CHECK(MPI_Comm_free(&copy) != MPI_SUCCESS);
  check_communicator(comm);
  refuse = false;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Comm_free(&comm));
  MPI_Comm_free_keyval(&callback);
}

MPI_CASE(failed_disconnect) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  int callback = key();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_attr(comm, callback, nullptr);
  refuse = true;
  MPI_Comm copy = comm;
  CHECK(MPI_Comm_disconnect(&copy) != MPI_SUCCESS);
  check_communicator(comm);
  refuse = false;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Comm_disconnect(&comm));
  MPI_Comm_free_keyval(&callback);
}

MPI_CASE(failed_free_of_a_predefined_communicator) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  MPI_Comm world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
  CHECK(MPI_Comm_free(&world) != MPI_SUCCESS);
  CHECK(MPI_Comm_free(&self) != MPI_SUCCESS);
  check_communicator(MPI_COMM_WORLD);
  check_communicator(MPI_COMM_SELF);
}

MPI_CASE(used_in_its_delete_callback) {
  static MPI_Comm expected;
  int callback = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm comm, int, void*, void*) {
        CHECK(comm == expected);
        check_communicator(comm);
        return MPI_SUCCESS;
      },
      &callback, nullptr);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  expected = comm;
  MPI_Comm_set_attr(comm, callback, nullptr);
  check_communicator(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&callback);
}

MPI_CASE(invalid_handle_then_valid_with_its_value) {
  const ReturnErrors returned(MPI_COMM_WORLD), returned_by_self(MPI_COMM_SELF);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const MPI_Comm value = comm;
  check_communicator(comm);
  MPI_Comm_free(&comm);
  int data[1000] = {}, all[4000] = {};
  MPI_Request request;
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Send(data, 1000, MPI_INT, 0, 0, value)));
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Bcast(data, 1000, MPI_INT, 0, value)));
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Allgather(data, 1000, MPI_INT, all, 1000, MPI_INT, value)));
  CHECK_EQUAL(MPI_ERR_COMM, error_class(MPI_Iallgather(data, 1000, MPI_INT, all, 1000, MPI_INT, value, &request)));
  std::vector<MPI_Comm> made;
  for (int i = 0; i < 20; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    made.push_back(comm);
    if (comm == value) break;
  }
  CHECK(made.back() == value);
  for (MPI_Comm& one : made) {
    check_communicator(one);
    MPI_Comm_free(&one);
  }
}

MPI_CASE(handle_value_reused_for_other_members) {
  // The handle value of a duplicate of MPI_COMM_WORLD is reused for halves of it, then for another order of ranks.
  for (int round = 0; round < 6; ++round) {
    MPI_Comm comm;
    if (round % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (round % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &comm);
    if (round % 3 == 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
    check_communicator(comm);
    MPI_Comm_free(&comm);
  }
}

MPI_CASE(freed_while_a_collective_and_a_message_are_pending) {
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const Ring ring(comm);
    const std::size_t count = 50000;
    std::vector<int> out(count, ring.rank), in(count * static_cast<std::size_t>(ring.size)), message(count);
    MPI_Request requests[3];
    MPI_Irecv(message.data(), count, MPI_INT, ring.previous, 0, comm, &requests[0]);
    MPI_Isend(out.data(), count, MPI_INT, ring.next, 0, comm, &requests[1]);
    MPI_Iallgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm, &requests[2]);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
    check_communicator(comm);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(ring.previous, message[count - 1]);
    for (int r = 0; r < ring.size; ++r) CHECK_EQUAL(r, in[static_cast<std::size_t>(r) * count + count - 1]);
    MPI_Comm_free(&comm);
  }
}

/// Only one rank makes the wrong call, as a program does whose ranks check their own input. The library finds the error
/// before it communicates, so the other ranks' next creation must go with this rank's next one.
MPI_CASE(creations_that_fail_on_one_rank) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  const int sizes[] = {9999}, periods[] = {0};
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    int error = MPI_SUCCESS;
    if (world_rank() == round % 2) {
      if (round / 2 == 0) error = MPI_Comm_split(MPI_COMM_WORLD, 0, 0, nullptr);
      if (round / 2 == 1) error = MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm);
      if (round / 2 == 2) error = MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &comm);
      if (round / 2 == 3) error = MPI_Comm_dup(MPI_COMM_WORLD, nullptr);
      if (round / 2 == 4) error = MPI_Comm_split_type(MPI_COMM_WORLD, 99, 0, MPI_INFO_NULL, &comm);
      CHECK(error != MPI_SUCCESS);
    }
    if (round % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (round % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &comm);
    if (round % 3 == 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
    check_communicator(comm);
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
