// SPDX-License-Identifier: Apache-2.0
// small_calls [--only NAME,NAME,...] [--repeats N]: patterns of calls that move eight bytes or none, and types that are
// made for one message, between two ranks. A plain MPI program.
//
// Prints a line for each pattern: name, MPI calls of a rank in a round, median and least nanoseconds of a round (the
// slower rank's). A sample is a loop of rounds between two barriers; each value that arrives is checked at the end.
// --repeats: rounds of one pattern, not timed, for counting instructions; one rank is enough for those with itself.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "base/median.hpp"
#include "bench/options.hpp"

namespace {

constexpr int burst = 8;  ///< messages at one time of the patterns with many requests

int rank = 0, peer = 0;
bool wrong = false;
std::int64_t out = 0, in = 0;
std::int64_t many_out[burst], many_in[burst];
MPI_Request started[2];

void check(bool good) { wrong = wrong || !good; }

void blocking_pair() {
  if (rank == 0) MPI_Send(&out, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD);
  MPI_Recv(&in, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(&out, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD);
}

void sendrecv() {
  MPI_Sendrecv(&out, 1, MPI_INT64_T, peer, 0, &in, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void exchange() {
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void waits() {
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

void post_burst(MPI_Request* requests) {
  for (int i = 0; i < burst; ++i) MPI_Irecv(&many_in[i], 1, MPI_INT64_T, peer, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < burst; ++i)
    MPI_Isend(&many_out[i], 1, MPI_INT64_T, peer, i, MPI_COMM_WORLD, &requests[burst + i]);
}

void burst_waitall() {
  MPI_Request requests[2 * burst];
  post_burst(requests);
  MPI_Waitall(2 * burst, requests, MPI_STATUSES_IGNORE);
}

void burst_waitany() {
  MPI_Request requests[2 * burst];
  post_burst(requests);
  for (int i = 0; i < 2 * burst; ++i) {
    int index;
    MPI_Waitany(2 * burst, requests, &index, MPI_STATUS_IGNORE);
  }
}

void burst_waitsome() {
  MPI_Request requests[2 * burst];
  post_burst(requests);
  for (int left = 2 * burst; left > 0;) {
    int found, indices[2 * burst];
    MPI_Waitsome(2 * burst, requests, &found, indices, MPI_STATUSES_IGNORE);
    left -= found;
  }
}

void to_itself() {
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT64_T, 0, 0, MPI_COMM_SELF, &request);
  MPI_Send(&out, 1, MPI_INT64_T, 0, 0, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void exchange_with_itself() {
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT64_T, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT64_T, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void test_null() {
  MPI_Request request = MPI_REQUEST_NULL;
  int flag = 0;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

void test_completed() {
  MPI_Request request;
  int flag = 0;
  MPI_Isend(&out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

void wait_null() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void persistent() {
  MPI_Startall(2, started);
  MPI_Wait(&started[0], MPI_STATUS_IGNORE);
  MPI_Wait(&started[1], MPI_STATUS_IGNORE);
}

void allreduce() { MPI_Allreduce(&out, &in, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD); }
void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void duplicate() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
}

// Types. The displacements of an index list are new in each round.

constexpr int most_blocks = 1000;
std::vector<double> from(5 * most_blocks), to(5 * most_blocks);
int places[most_blocks];

void next_list(int blocks) {
  static std::uint32_t state = 7;
  int place = 0;
  for (int i = 0; i < blocks; ++i) {
    state = state * 1664525u + 1013904223u;
    places[i] = place;
    place += 2 + static_cast<int>(state >> 20 & 1);
  }
}

void send_type(MPI_Datatype type) {
  MPI_Request requests[2];
  MPI_Irecv(to.data(), 1, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from.data(), 1, type, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

template <int blocks, int uses>
void new_list() {
  next_list(blocks);
  MPI_Datatype type;
  MPI_Type_create_indexed_block(blocks, 1, places, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < uses; ++i) send_type(type);
  MPI_Type_free(&type);
}

template <int blocks>
void new_vector() {
  static int stride = 2;
  MPI_Datatype type;
  MPI_Type_vector(blocks, 1, stride, MPI_DOUBLE, &type);
  stride = 5 - stride;
  MPI_Type_commit(&type);
  send_type(type);
  MPI_Type_free(&type);
}

void new_subarray() {
  static int step = 0;
  const int sizes[] = {32, 32, 4}, parts[] = {16, 1 + ++step % 3, 4}, begin[] = {step % 8, 1, 0};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  send_type(type);
  MPI_Type_free(&type);
}

void commit_vector() {
  MPI_Datatype type;
  MPI_Type_vector(16, 2, 8, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&type);
}

template <int blocks>
void commit_list() {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(blocks, 1, places, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&type);
}

struct Pattern {
  const char* name;
  void (*round)();
  int calls;   ///< of a round
  int rounds;  ///< of a sample
};
constexpr Pattern patterns[] = {
    {"blocking_pair", blocking_pair, 2, 2000},
    {"sendrecv", sendrecv, 1, 2000},
    {"exchange", exchange, 3, 2000},
    {"waits", waits, 4, 2000},
    {"burst_waitall", burst_waitall, 17, 300},
    {"burst_waitany", burst_waitany, 32, 300},
    {"burst_waitsome", burst_waitsome, 20, 300},
    {"persistent", persistent, 3, 2000},
    {"to_itself", to_itself, 3, 5000},
    {"exchange_with_itself", exchange_with_itself, 3, 5000},
    {"test_null", test_null, 1, 20000},
    {"wait_null", wait_null, 1, 20000},
    {"test_completed", test_completed, 2, 10000},
    {"allreduce", allreduce, 1, 2000},
    {"barrier", barrier, 1, 2000},
    {"duplicate", duplicate, 2, 200},
    {"commit_vector", commit_vector, 3, 2000},
    {"commit_list_200", commit_list<200>, 3, 1000},
    {"list_200_once", new_list<200, 1>, 6, 300},
    {"list_1000_once", new_list<1000, 1>, 6, 100},
    {"list_1000_twice", new_list<1000, 2>, 9, 100},
    {"list_1000_20_times", new_list<1000, 20>, 63, 10},
    {"vector_1000_once", new_vector<1000>, 6, 200},
    {"subarray_once", new_subarray, 6, 300},
};

/// Nanoseconds of a round, of each sample.
std::vector<double> samples_of(const Pattern& pattern) {
  constexpr int samples = 31;
  std::vector<double> all;
  for (int i = 0; i <= samples; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int round = 0; round < pattern.rounds; ++round) pattern.round();
    double own = (MPI_Wtime() - begin) / pattern.rounds * 1e9, slower = 0;
    MPI_Allreduce(&own, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i > 0) all.push_back(slower);  // the first one warms up
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bench::Only only;
  int repeats = 0;
  bench::apply_or_exit(argc, argv,
                       {{"--only", only.setter()}, {"--repeats", command_line::whole(repeats, 0, 1 << 30)}});
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  peer = ranks > 1 ? rank ^ 1 : 0;
  out = 100 + rank;
  for (int i = 0; i < burst; ++i) many_out[i] = 100 * i + rank;
  std::iota(from.begin(), from.end(), 0.5);
  next_list(most_blocks);
  MPI_Recv_init(&in, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &started[0]);
  MPI_Send_init(&out, 1, MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &started[1]);
  for (const Pattern& pattern : patterns) {
    if (!only.wants(pattern.name)) continue;
    if (ranks == 1 && pattern.round == blocking_pair) {
      std::fprintf(stderr, "blocking_pair is left out: it needs two ranks\n");  // its send may wait for its receive
      continue;
    }
    in = -1;
    std::fill(many_in, many_in + burst, -1);
    std::fill(to.begin(), to.end(), -1.0);
    if (repeats > 0) {
      for (int i = 0; i < repeats; ++i) pattern.round();
      continue;
    }
    const std::vector<double> all = samples_of(pattern);
    check(in == -1 || in == 100 + peer || in == 100 + rank || in == 101);
    for (int i = 0; i < burst; ++i) check(many_in[i] == -1 || many_in[i] == 100 * i + peer);
    for (std::size_t i = 0; i < to.size(); ++i) check(to[i] == -1.0 || to[i] == from[i]);
    if (rank == 0) {
      std::printf("%s %d %.2f %.2f\n", pattern.name, pattern.calls, bestride::median_of(all),
                  *std::min_element(all.begin(), all.end()));
      std::fflush(stdout);
    }
  }
  MPI_Request_free(&started[0]);
  MPI_Request_free(&started[1]);
  MPI_Finalize();
  if (wrong) std::fprintf(stderr, "small_calls: WRONG data\n");
  return wrong ? 1 : 0;
}
