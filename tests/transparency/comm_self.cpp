// SPDX-License-Identifier: Apache-2.0
// transparency_comm_self CASE [session]: MPI calls in delete callbacks of attributes of MPI_COMM_SELF, which
// MPI_Finalize calls first (MPI-3.1, 8.7.1). Two ranks or more. "session": a session outlives MPI_Finalize; MPICH 4.0.2
// then calls the callbacks in MPI_Session_finalize. MPI_CASE is not used because the harness calls MPI_Finalize last.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

int rank = 0, ranks = 1, failures = 0;
MPI_Datatype type;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED rank %d: %s\n", rank, what);
  ++failures;
}

/// One call of each kind, in the form `nonblocking` or blocking.
void collectives(bool nonblocking) {
  constexpr int count = 6000;
  const std::vector<int> out(count, rank + 1);
  std::vector<int> largest(count), gathered(static_cast<std::size_t>(count * ranks));
  if (nonblocking) {
    MPI_Request requests[2];
    MPI_Iallreduce(out.data(), largest.data(), count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallgather(out.data(), count, MPI_INT, gathered.data(), count, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else {
    MPI_Allreduce(out.data(), largest.data(), count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allgather(out.data(), count, MPI_INT, gathered.data(), count, MPI_INT, MPI_COMM_WORLD);
  }
  check(largest == std::vector<int>(count, ranks), "allreduce");
  for (int of = 0; of < ranks; ++of) check(gathered[static_cast<std::size_t>(of * count)] == of + 1, "allgather");
}

void receive_records() {
  for (const int count : record_counts) {
    std::vector<Record> in(static_cast<std::size_t>(count));
    MPI_Recv(in.data(), count, type, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(wrong_records(in.data(), count) == 0, "received records");
  }
}
void send_records(MPI_Datatype of_type) {
  for (const int count : record_counts)
    MPI_Send(records(count).data(), count, of_type, ranks - 1, count, MPI_COMM_WORLD);
}

/// What the last rank does in the callback, and what the others do for it before MPI_Finalize.
struct Case {
  const char* name;
  void (*in_callback)();
  void (*before_finalize)();
};
constexpr Case cases[] = {
    {"blocking_collectives", [] { collectives(false); }, [] { collectives(false); }},
    {"nonblocking_collectives", [] { collectives(true); }, [] { collectives(true); }},
    {"received_records", [] { receive_records(); },
     [] {
       if (rank == 0) send_records(type);
     }},
    {"type_made_in_the_callback",
     [] {
       MPI_Type_free(&type);
       type = make_record_type();
       receive_records();
     },
     [] {
       if (rank == 0) send_records(type);
     }},
    {"communicator_made_in_the_callback",
     [] {
       MPI_Comm comm;
       MPI_Comm_dup(MPI_COMM_WORLD, &comm);
       collectives(false);
       MPI_Comm_free(&comm);
     },
     [] {
       MPI_Comm comm;
       MPI_Comm_dup(MPI_COMM_WORLD, &comm);
       collectives(false);
       MPI_Comm_free(&comm);
     }},
    // Few, because MPICH 4.0.2 does not complete a long message in MPI_Finalize.
    {"request_freed_in_the_callback",
     [] {
       MPI_Request request;
       static const std::vector<Record> out = records(record_counts[0]);
       MPI_Isend(out.data(), record_counts[0], type, 0, 1, MPI_COMM_WORLD, &request);
       MPI_Request_free(&request);
     },
     [] {
       if (rank != 0) return;
       std::vector<Record> in(static_cast<std::size_t>(record_counts[0]));
       MPI_Recv(in.data(), record_counts[0], type, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       check(wrong_records(in.data(), record_counts[0]) == 0, "records of a freed request");
     }},
};
const Case* chosen = nullptr;
int callbacks = 0;

int first_set(MPI_Comm, int, void*, void*) {
  check(callbacks++ == 1, "callbacks in the reverse order of setting");
  if (rank == ranks - 1) chosen->in_callback();
  return MPI_SUCCESS;
}
int second_set(MPI_Comm, int, void*, void*) {
  check(callbacks++ == 0, "callbacks in the reverse order of setting");
  return MPI_SUCCESS;
}
void set_attribute(MPI_Comm_delete_attr_function* callback) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& each : cases)
    if (argc > 1 && std::strcmp(argv[1], each.name) == 0) chosen = &each;
  if (!chosen) return 2;
#if MPI_VERSION >= 4
  const bool with_session = argc > 2 && std::strcmp(argv[2], "session") == 0;
  MPI_Session session;
  if (with_session) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  watch_for_hang();
  type = make_record_type();
  for (int i = 0; i < 20; ++i) collectives(i >= 10);
  set_attribute(&first_set);
  set_attribute(&second_set);
  if (rank < ranks - 1) chosen->before_finalize();
  MPI_Finalize();
#if MPI_VERSION >= 4
  if (with_session) check(MPI_Session_finalize(&session) == MPI_SUCCESS, "MPI_Session_finalize");
#endif
  check(callbacks == 2, "number of callbacks");
  return failures == 0 ? 0 : 1;
}
