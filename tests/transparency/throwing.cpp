// SPDX-License-Identifier: Apache-2.0
// transparency_throwing CASE: an error handler leaves the failed call by an exception, as MPI::ERRORS_THROW_EXCEPTIONS
// did, or by longjmp, and the caller continues. Each case is a separate process: MPICH 4.0.2 guarantees nothing after
// the jump, so the case makes only calls that work without the preload library and ends without MPI_Finalize. It runs
// without the launcher, which kills a process that closes its connection without MPI_Finalize before the process ends.
#include <unistd.h>

#include <csetjmp>
#include <cstring>
#include <stdexcept>

#include "tests/transparency/records.hpp"

using namespace bestride::test;

namespace {

std::jmp_buf back;
bool jumps = false;

void leave(MPI_Comm*, int*, ...) {
  if (jumps) std::longjmp(back, 1);
  throw std::runtime_error("MPI error");
}

std::vector<int> out(400000, 3), in(400000);
MPI_Datatype shorter, longer;
MPI_Comm comm = MPI_COMM_WORLD;

/// Sends this rank a message that is longer than the posted receive.
void truncated(bool nonblocking, int requests) {
  MPI_Request all[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (nonblocking) MPI_Irecv(in.data(), 1, shorter, rank, 0, comm, &all[0]);
  MPI_Isend(out.data(), 1, longer, rank, 0, comm, &all[1]);
  if (!nonblocking) MPI_Recv(in.data(), 1, shorter, rank, 0, comm, MPI_STATUS_IGNORE);
  if (requests == 1) MPI_Wait(&all[0], MPI_STATUS_IGNORE);
  if (requests == 2) MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
}

struct Call {
  const char* name;
  void (*call)();
};

const Call calls[] = {
    {"send", [] { MPI_Send(out.data(), -1, shorter, 0, 0, comm); }},
    {"isend",
     [] {
       MPI_Request q;
       MPI_Isend(out.data(), -1, shorter, 0, 0, comm, &q);
     }},
    {"recv_of_a_wrong_count", [] { MPI_Recv(in.data(), -1, shorter, 0, 0, comm, MPI_STATUS_IGNORE); }},
    {"recv", [] { truncated(false, 0); }},
    {"wait", [] { truncated(true, 1); }},
    {"waitall", [] { truncated(true, 2); }},
    {"sendrecv",
     [] { MPI_Sendrecv(out.data(), -1, shorter, 0, 0, in.data(), 1, shorter, 0, 0, comm, MPI_STATUS_IGNORE); }},
    {"send_init",
     [] {
       MPI_Request q;
       MPI_Send_init(out.data(), -1, shorter, 0, 0, comm, &q);
     }},
    {"probe", [] { MPI_Probe(99, 0, comm, MPI_STATUS_IGNORE); }},
    {"pack",
     [] {
       int at = 0;
       MPI_Pack(out.data(), -1, shorter, in.data(), 100, &at, comm);
     }},
    {"comm_split", [] { MPI_Comm_split(comm, 0, 0, nullptr); }},
    {"cart_create",
     [] {
       const int sizes[] = {9999}, periods[] = {0};
       MPI_Comm made;
       MPI_Cart_create(comm, 1, sizes, periods, 0, &made);
     }},
    {"bcast", [] { MPI_Bcast(out.data(), 1, shorter, 99, comm); }},
    {"ibcast",
     [] {
       MPI_Request q;
       MPI_Ibcast(out.data(), 1, shorter, 99, comm, &q);
     }},
    {"alltoall", [] { MPI_Alltoall(out.data(), 1, shorter, in.data(), -1, shorter, comm); }},
    {"gather", [] { MPI_Gather(out.data(), -1, shorter, in.data(), 1, shorter, 0, comm); }},
    {"allgather", [] { MPI_Allgather(out.data(), -1, shorter, in.data(), 1, shorter, comm); }},
    {"iallgather",
     [] {
       MPI_Request q;
       MPI_Iallgather(out.data(), -1, shorter, in.data(), 1, shorter, comm, &q);
     }},
    {"allgather_init",
     [] {
       MPI_Request q;
       MPI_Allgather_init(out.data(), -1, shorter, in.data(), 1, shorter, comm, MPI_INFO_NULL, &q);
     }},
    {"scatter", [] { MPI_Scatter(out.data(), -1, shorter, in.data(), -1, shorter, 0, comm); }},
    {"allreduce", [] { MPI_Allreduce(out.data(), in.data(), 1, MPI_INT, MPI_OP_NULL, comm); }},
    {"reduce", [] { MPI_Reduce(out.data(), in.data(), 100, MPI_INT, MPI_SUM, 99, comm); }},
    {"reduce_scatter_block", [] { MPI_Reduce_scatter_block(out.data(), in.data(), 1, MPI_INT, MPI_OP_NULL, comm); }},
    {"type_commit",
     [] {
       MPI_Datatype none = MPI_DATATYPE_NULL;
       MPI_Type_commit(&none);
     }},
    {"type_free",
     [] {
       MPI_Datatype none = MPI_DATATYPE_NULL;
       MPI_Type_free(&none);
     }},
};

/// Whether the exception or the jump of the error handler reached the caller.
bool left(void (*call)()) {
  if (jumps) {
    if (setjmp(back) != 0) return true;
    call();
    return false;
  }
  try {
    call();
  } catch (const std::runtime_error& error) {
    return std::strcmp(error.what(), "MPI error") == 0;
  }
  return false;
}

int run(const Call& one) {
  if (!left(one.call)) {
    std::fprintf(stderr, "FAILED %s: the exception or jump of the error handler did not reach the caller\n", one.name);
    return 1;
  }
  // The call fails in the same way a second time, so the first one left no state behind. Then messages still work.
  const bool truncates = std::strcmp(one.name, "recv") == 0 || std::strncmp(one.name, "wait", 4) == 0;
  if (!truncates && !left(one.call)) return 1;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (const int count : {16, 1024}) {
    const std::vector<Record> sent = records(count);
    std::vector<Record> received(sent.size());
    MPI_Datatype type = make_record_type();
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Request send;
    MPI_Isend(sent.data(), count, type, rank, 5, comm, &send);
    MPI_Recv(received.data(), count, type, rank, 5, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (wrong_records(received.data(), count) != 0) {
      std::fprintf(stderr, "FAILED %s: a message afterwards is wrong\n", one.name);
      return 1;
    }
    MPI_Type_free(&type);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  jumps = argc > 2 && std::strcmp(argv[2], "longjmp") == 0;
  MPI_Init(&argc, &argv);
  MPI_Type_vector(20000, 1, 2, MPI_INT, &shorter);
  MPI_Type_commit(&shorter);
  MPI_Type_vector(100000, 1, 2, MPI_INT, &longer);
  MPI_Type_commit(&longer);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  for (const Call& one : calls)
    if (argc > 1 && std::strcmp(argv[1], one.name) == 0) _exit(run(one));
  std::fprintf(stderr, "no such case\n");
  _exit(2);
}
