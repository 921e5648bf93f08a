// SPDX-License-Identifier: Apache-2.0
// transparency_partial [forks]: a job whose ranks have different settings. Messages, collectives, a second
// communicator, MPI_Finalize. forks: a helper process is forked before MPI_Init; it calls MPI_Initialized and lives
// until its parent ends.
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/transparency/records.hpp"

using namespace bestride::test;

namespace {

pid_t helper() {
  int pipes[2];
  if (pipe(pipes) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Close the pipes to the launcher, which waits until all their ends are closed.
    close(0);
    close(1);
    close(2);
    int initialized = 1;
    MPI_Initialized(&initialized);
    const char answer = static_cast<char>(initialized);
    if (write(pipes[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char answer = 1;
  if (read(pipes[0], &answer, 1) != 1 || answer != 0) std::fprintf(stderr, "FAILED MPI_Initialized in the helper\n");
  close(pipes[0]);
  close(pipes[1]);
  return child;
}

int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED rank %d: %s\n", world_rank(), what);
  ++failures;
}

void exchange(MPI_Comm comm) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Datatype type = make_record_type();
  for (const int count : record_counts) {
    const std::vector<Record> out = records(count, rank);
    std::vector<Record> in(out.size());
    MPI_Request send;
    MPI_Isend(out.data(), count, type, next, 0, comm, &send);
    MPI_Recv(in.data(), count, type, previous, 0, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    check(wrong_records(in.data(), count, previous) == 0, "a message");
  }
  MPI_Type_free(&type);
  std::vector<int> out(50000, rank), in(out.size() * static_cast<std::size_t>(size));
  MPI_Request request;
  MPI_Iallgather(out.data(), 50000, MPI_INT, in.data(), 50000, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < size; ++r) check(in[static_cast<std::size_t>(r) * out.size() + 49999] == r, "MPI_Iallgather");
  MPI_Bcast(in.data(), 50000, MPI_INT, size - 1, comm);
  MPI_Barrier(comm);
}

}  // namespace

int main(int argc, char** argv) {
  const pid_t child = argc > 1 && std::strcmp(argv[1], "forks") == 0 ? helper() : 0;
  MPI_Init(&argc, &argv);
  exchange(MPI_COMM_WORLD);
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
  exchange(comm);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return failures == 0 ? 0 : 1;
}
