// SPDX-License-Identifier: Apache-2.0
// transparency_leaks MODE ROUNDS: creates, uses once and frees objects. Prints the growth of the heap per round after
// the first tenth of the rounds, and the growth of what the preload library allocated; leaks.py compares the first with
// a run without the preload library. Two ranks.
#include <malloc.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "heap_of_library.hpp"

namespace {

std::vector<double> out(1 << 14, 1.5), in(1 << 14);
int peer = 0;

MPI_Datatype pairs() {
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype type;
  MPI_Type_create_struct(2, lengths, places, members, &type);
  MPI_Type_commit(&type);
  return type;
}

MPI_Datatype vector_of(int blocks) {
  MPI_Datatype type;
  MPI_Type_vector(blocks, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

void types(int round) {
  MPI_Datatype vector = vector_of(300 + round % 17), record = pairs();
  MPI_Request requests[4];
  MPI_Irecv(in.data(), 1, vector, peer, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(in.data() + 4000, 100, record, peer, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out.data(), 1, vector, peer, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(out.data() + 4000, 100, record, peer, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&vector);
  MPI_Type_free(&record);
}

void communicators(int) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Datatype vector = vector_of(2000);
  MPI_Sendrecv(out.data(), 1, vector, peer, 0, in.data(), 1, vector, peer, 0, comm, MPI_STATUS_IGNORE);
  MPI_Type_free(&vector);
  MPI_Comm_free(&comm);
}

void persistent(int) {
  MPI_Datatype record = pairs();
  MPI_Request requests[2];
  MPI_Send_init(out.data(), 200, record, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in.data(), 200, record, peer, 0, MPI_COMM_WORLD, &requests[1]);
  for (int start = 0; start < 2; ++start) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Type_free(&record);
}

void collectives(int) {
  MPI_Datatype vector = vector_of(100), type;
  MPI_Type_create_resized(vector, 0, 1600, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&vector);
  MPI_Request request;
  MPI_Iallgather(out.data(), 1, type, in.data(), 1, type, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
}

void cancelled(int) {
  MPI_Datatype vector = vector_of(3000);
  MPI_Request request;
  MPI_Irecv(in.data(), 1, vector, peer, 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free(&vector);
}

void windows(int) {
  MPI_Datatype vector = vector_of(300);
  MPI_Win win;
  MPI_Win_create(in.data(), static_cast<MPI_Aint>(in.size() * sizeof(double)), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(out.data(), 1, vector, peer, 0, 1, vector, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Type_free(&vector);
}

void matched(int) {
  MPI_Datatype vector = vector_of(1300), duplicate;
  MPI_Type_dup(vector, &duplicate);
  MPI_Request requests[2];
  MPI_Isend(out.data(), 1, vector, peer, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Message message;
  MPI_Mprobe(peer, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(in.data(), 1, duplicate, &message, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&vector);
  MPI_Type_free(&duplicate);
}

void contents(int) {
  MPI_Datatype vector = vector_of(50), outer, inner;
  MPI_Type_contiguous(2, vector, &outer);
  MPI_Type_commit(&outer);
  int count;
  MPI_Aint address;
  MPI_Type_get_contents(outer, 1, 0, 1, &count, &address, &inner);
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
  MPI_Type_free(&vector);
}

}  // namespace

int main(int argc, char** argv) {
  struct Mode {
    const char* name;
    void (*round)(int);
  };
  const Mode modes[] = {{"types", types},           {"communicators", communicators},
                        {"persistent", persistent}, {"collectives", collectives},
                        {"cancelled", cancelled},   {"windows", windows},
                        {"matched", matched},       {"contents", contents}};
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  const bool preloaded = bestride::test::count_heap_of_library();
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1000;
  for (const Mode& mode : modes) {
    if (argc < 2 || std::strcmp(argv[1], mode.name) != 0) continue;
    long before = 0, before_of_library = 0;
    for (int round = 0; round < rounds; ++round) {
      mode.round(round);
      if (round != rounds / 10) continue;
      before = static_cast<long>(mallinfo2().uordblks);
      before_of_library = bestride::test::heap_of_library();
    }
    const auto counted = static_cast<double>(rounds - rounds / 10);
    const double grown = static_cast<double>(static_cast<long>(mallinfo2().uordblks) - before) / counted;
    const double of_library = static_cast<double>(bestride::test::heap_of_library() - before_of_library) / counted;
    if (rank != 0) continue;
    std::printf("grown %.1f bytes a round\n", grown);
    if (preloaded) std::printf("allocated by the library: %.1f bytes a round\n", of_library);
  }
  MPI_Finalize();
  return 0;
}
