// SPDX-License-Identifier: Apache-2.0
// transparency_after_finalize CASE: a session outlives MPI_Finalize (MPI-4, 11.3.2), and so do its communicators and
// all datatypes. Two ranks. MPI_CASE is not used because the harness calls MPI_Finalize last.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int counts[] = {500, 1500, 4500, 13500, 40500};
int rank = 0, failures = 0;

void check(bool good, const char* what, int count) {
  if (good) return;
  std::fprintf(stderr, "FAILED rank %d, %d records: %s\n", rank, count, what);
  ++failures;
}

void receive(MPI_Datatype type, MPI_Comm comm, int count) {
  std::vector<Record> in(static_cast<std::size_t>(count));
  check(MPI_Recv(in.data(), count, type, 0, count, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI_Recv", count);
  check(wrong_records(in.data(), count) == 0, "wrong elements", count);
}

void send(MPI_Datatype type, MPI_Comm comm, int count) { MPI_Send(records(count).data(), count, type, 1, count, comm); }

}  // namespace

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Init(&argc, &argv);
  rank = world_rank();
  watch_for_hang();
  MPI_Group group;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm comm;
  MPI_Comm_create_from_group(group, "transparency", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Datatype type = make_record_type();

  if (is("sender_finalizes_last")) {
    if (rank == 1) MPI_Finalize();
    for (const int count : counts) rank == 0 ? send(type, comm, count) : receive(type, comm, count);
    if (rank == 0) MPI_Finalize();
  } else if (is("messages_pending_in_finalize")) {
    const std::vector<Record> out = records(counts[4]);
    MPI_Request requests[5];
    for (int i = 0; rank == 0 && i < 5; ++i) MPI_Isend(out.data(), counts[i], type, 1, counts[i], comm, &requests[i]);
    MPI_Finalize();
    if (rank == 0) MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (const int count : counts)
      if (rank == 1) receive(type, comm, count);
  } else if (is("messages_after_finalize")) {
    MPI_Finalize();
    for (const int count : counts) rank == 0 ? send(type, comm, count) : receive(type, comm, count);
  } else if (is("types_made_after_finalize")) {
    MPI_Finalize();
    for (const int count : counts) {
      MPI_Type_free(&type);
      type = make_record_type();
      rank == 0 ? send(type, comm, count) : receive(type, comm, count);
    }
  } else if (is("contents_after_finalize")) {
    MPI_Datatype outer;
    MPI_Type_contiguous(2, type, &outer);
    MPI_Type_commit(&outer);
    MPI_Type_free(&type);
    MPI_Finalize();
    int integer = 0;
    MPI_Aint address = 0;
    MPI_Type_get_contents(outer, 1, 0, 1, &integer, &address, &type);
    MPI_Type_free(&outer);
    for (const int count : counts) rank == 0 ? send(type, comm, count) : receive(type, comm, count);
  } else {
    std::fprintf(stderr, "no such case: %s\n", name);
    return 2;
  }
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  check(MPI_Session_finalize(&session) == MPI_SUCCESS, "MPI_Session_finalize", 0);
  return failures == 0 ? 0 : 1;
}
