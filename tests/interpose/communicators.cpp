// SPDX-License-Identifier: Apache-2.0
// Communicators that are made, used and freed, in every way in which they can share the memory of earlier ones: members
// that are late, more of them than there is memory for, threads that make them in different orders on different ranks.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

namespace {

int rank = 0, size = 1, failures = 0;

void check(bool good, const char* what, int number) {
  if (good) return;
  if (failures++ < 20) std::fprintf(stderr, "rank %d FAILED %s (%d)\n", rank, what, number);
}

void late(int who) {
  if (rank == who) std::this_thread::sleep_for(std::chrono::microseconds(300));
}

constexpr int rows = 16;

/// A column for each member.
struct Columns {
  int ranks = 0, own = 0;
  std::vector<double> out, in;
  explicit Columns(MPI_Comm comm, int seed) {
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &own);
    out.resize(static_cast<std::size_t>(rows * ranks));
    in.assign(out.size(), -1);
    for (int row = 0; row < rows; ++row)
      for (int to = 0; to < ranks; ++to) out[at(row, to)] = value(own, to, row, seed);
  }
  std::size_t at(int row, int which) const { return static_cast<std::size_t>(row * ranks + which); }
  static double value(int from, int to, int row, int seed) { return 1e6 * seed + 1e4 * from + 100 * to + row; }
  MPI_Datatype type() const {
    MPI_Datatype strided, made;
    MPI_Type_vector(rows, 1, ranks, MPI_DOUBLE, &strided);
    MPI_Type_create_resized(strided, 0, sizeof(double), &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&strided);
    return made;
  }
  bool arrived(int seed) const {
    for (int row = 0; row < rows; ++row)
      for (int from = 0; from < ranks; ++from)
        if (in[at(row, from)] != value(from, own, row, seed)) return false;
    return true;
  }
};

void alltoall(MPI_Comm comm, int seed, bool nonblocking) {
  Columns data(comm, seed);
  MPI_Datatype type = data.type();
  if (nonblocking) {
    MPI_Request request;
    MPI_Ialltoall(data.out.data(), 1, type, data.in.data(), 1, type, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Alltoall(data.out.data(), 1, type, data.in.data(), 1, type, comm);
  }
  check(data.arrived(seed), nonblocking ? "Ialltoall" : "Alltoall", seed);
  MPI_Type_free(&type);
}

/// From the previous and the next rank of a ring.
void neighbors(MPI_Comm comm, int seed, bool nonblocking) {
  int own = 0, ranks = 1;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &ranks);
  const std::vector<int> out{1000 * seed + own, 1000 * seed + own};
  std::vector<int> in{-1, -1};
  MPI_Request request = MPI_REQUEST_NULL;
  if (nonblocking)
    MPI_Ineighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm, &request);
  else
    MPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(in[0] == 1000 * seed + (own + ranks - 1) % ranks && in[1] == 1000 * seed + (own + 1) % ranks, "neighbours",
        seed);
}

void broadcast(MPI_Comm comm, int seed) {
  int own = 0, ranks = 1;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &ranks);
  const int root = seed % ranks;
  std::vector<int> data(4096, own == root ? seed : -1);
  MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_INT, root, comm);
  check(data == std::vector<int>(4096, seed), "Bcast", seed);
}

constexpr int ways = 6;

/// The members come from a communicator of all ranks; not all of them need be in the result.
MPI_Comm made(MPI_Comm from, int way) {
  MPI_Comm comm = MPI_COMM_NULL;
  int own = 0, ranks = 1;
  MPI_Comm_rank(from, &own);
  MPI_Comm_size(from, &ranks);
  const int periodic = 1, left = (own + ranks - 1) % ranks, right = (own + 1) % ranks;
  const int ends[] = {left, right};
  MPI_Request request;
  switch (way) {
    case 0: MPI_Comm_dup(from, &comm); break;
    case 1: MPI_Comm_split(from, own % 2, -own, &comm); break;  // other orders, and ranks with a communicator alone
    case 2: MPI_Comm_split(from, own == 0 && ranks > 1 ? MPI_UNDEFINED : 0, own, &comm); break;
    case 3: MPI_Cart_create(from, 1, &ranks, &periodic, 0, &comm); break;
    case 4:
      MPI_Dist_graph_create_adjacent(from, 2, ends, MPI_UNWEIGHTED, 2, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
      break;
    default: MPI_Comm_idup(from, &comm, &request); MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return comm;
}

void use(MPI_Comm comm, int way, int seed) {
  alltoall(comm, seed, seed % 3 == 0);
  broadcast(comm, seed);
  if (way == 3 && seed % 2 == 0) neighbors(comm, seed, seed % 4 == 0);
}

void lives(int count) {
  for (int life = 0; life < count; ++life)
    for (int way = 0; way < ways; ++way) {
      MPI_Comm comm = made(MPI_COMM_WORLD, way);
      if (comm == MPI_COMM_NULL) continue;
      for (int i = 0; i < life % 9; ++i) use(comm, way, 10 * life + i);
      // A member that is late is still in this communicator when others use its memory for the next one.
      late(life % size);
      MPI_Comm child = life % 4 == 0 ? made(comm, 0) : MPI_COMM_NULL;
      if (child != MPI_COMM_NULL) {
        MPI_Comm_free(&comm);
        for (int i = 0; i < 6; ++i) use(child, 0, 5 * life + i);
        MPI_Comm_free(&child);
      } else {
        MPI_Comm_free(&comm);
      }
    }
}

/// More than a rank can lead.
void many_alive(int count) {
  std::vector<std::pair<MPI_Comm, int>> comms;
  for (int i = 0; i < count; ++i) {
    const int way = i % 7 == 0 ? 3 : 0;
    comms.emplace_back(made(MPI_COMM_WORLD, way), way);
  }
  for (int round = 0; round < 3; ++round)
    for (auto& [comm, way] : comms) use(comm, way, round);
  for (std::size_t i = 0; i < comms.size(); i += 2) MPI_Comm_free(&comms[i].first);
  for (std::size_t i = 0; i < comms.size(); i += 2) comms[i].first = made(MPI_COMM_WORLD, comms[i].second);
  for (int round = 0; round < 3; ++round)
    for (auto& [comm, way] : comms) use(comm, way, round);
  for (auto& one : comms) MPI_Comm_free(&one.first);
}

/// Each thread makes communicators from one of its own, in an order that differs between the ranks.
void threads(int count) {
  constexpr int most = 3;
  std::vector<MPI_Comm> parents(most);
  for (MPI_Comm& parent : parents) MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  std::vector<std::thread> all;
  for (int thread = 0; thread < most; ++thread)
    all.emplace_back([&, thread] {
      for (int i = 0; i < count; ++i) {
        if ((i + thread + rank) % 5 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(50 * ((rank + thread) % 3)));
        MPI_Comm comm = made(parents[static_cast<std::size_t>(thread)], 0);
        for (int j = 0; j < 5; ++j) alltoall(comm, 1000 * thread + 7 * i + j, j == 4);
        MPI_Comm_free(&comm);
      }
    });
  for (std::thread& thread : all) thread.join();
  for (MPI_Comm& parent : parents) MPI_Comm_free(&parent);
}

/// So many calls that the memory becomes larger, of each kind.
void growing(int count) {
  MPI_Comm comm = made(MPI_COMM_WORLD, 3);
  for (int i = 0; i < count; ++i) {
    alltoall(comm, i, false);
    alltoall(comm, i, true);
    if (i % 8 == 0) broadcast(comm, i);
    neighbors(comm, i, i % 2 == 0);
  }
  MPI_Comm_free(&comm);
}

/// The members ask for memory in the first call. Rank 0 does not wait for the others in it: it has freed the
/// communicator, and makes the next one, before they look for the answer.
void answered_late(int times) {
  for (int i = 0; i < times; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    double own = rank + 1, most = 0;
    MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, size - 1, comm);
    check(rank < size - 1 || most == size, "a late answer", i);
    MPI_Comm_free(&comm);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  answered_late(20);
  lives(18);
  many_alive(300);
  growing(1100);
  lives(9);
  if (level == MPI_THREAD_MULTIPLE) threads(40);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
