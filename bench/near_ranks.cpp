// SPDX-License-Identifier: Apache-2.0
// near_ranks [SECONDS]: contiguous messages between two ranks on the processors that their launcher bound them to. Each
// end uses plain bytes, or the equivalent datatype of the preload library, written by hand. One JSON object per line:
// kind (one_way, exchange), bytes, and microseconds (median) for each pair of forms.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/median.hpp"

namespace {

constexpr int least = 1 << 10, most = 16 << 20;
int rank = 0;

/// One element with an extent larger than its size.
MPI_Datatype respelled(int bytes) {
  MPI_Datatype block, spaced;
  MPI_Type_contiguous(bytes, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, bytes + 1, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Type_free(&block);
  return spaced;
}

struct End {
  char* at;
  int count;
  MPI_Datatype type;
};

/// From rank 0 to rank 1, and an empty answer.
void one_way(const End& out, const End& in) {
  if (rank == 0) {
    MPI_Send(out.at, out.count, out.type, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in.at, in.count, in.type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

void exchange(const End& out, const End& in) {
  MPI_Request requests[2];
  MPI_Irecv(in.at, in.count, in.type, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out.at, out.count, out.type, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double limit = argc > 1 ? std::atof(argv[1]) : 0.05;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // The areas are used in turn, as in an application that has touched other data between two messages.
  constexpr int span = 32 << 20;
  std::vector<char> out(span + most, 1), in(span + most, 2);
  constexpr const char* names[] = {"plain", "respelled", "respelled_sender", "respelled_receiver"};
  for (const bool both_ways : {false, true})
    for (int bytes = least; bytes <= most; bytes *= 2) {
      MPI_Datatype spaced = respelled(bytes);
      std::vector<double> samples[4];
      const int places = std::max(1, span / bytes);
      const double end = MPI_Wtime() + limit;
      for (int turn = 0, more = 1; more; ++turn) {
        for (int form = 0; form < 4; ++form) {
          const auto at = static_cast<std::size_t>(turn * 4 + form) % static_cast<std::size_t>(places) *
                          static_cast<std::size_t>(bytes);
          const bool sender = form == 1 || form == 2, receiver = form == 1 || form == 3;
          const End from{out.data() + at, sender ? 1 : bytes, sender ? spaced : MPI_BYTE};
          const End to{in.data() + at, receiver ? 1 : bytes, receiver ? spaced : MPI_BYTE};
          const double start = MPI_Wtime();
          both_ways ? exchange(from, to) : one_way(from, to);
          if (turn >= 3) samples[form].push_back(MPI_Wtime() - start);
        }
        more = turn < 10 || MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
      }
      MPI_Type_free(&spaced);
      if (rank != 0) continue;
      std::printf("{\"kind\": \"%s\", \"bytes\": %d", both_ways ? "exchange" : "one_way", bytes);
      for (int form = 0; form < 4; ++form)
        std::printf(", \"%s\": %.3f", names[form], bestride::median_of(samples[form]) * 1e6);
      std::printf("}\n");
    }
  MPI_Finalize();
  return 0;
}
