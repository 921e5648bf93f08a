// SPDX-License-Identifier: Apache-2.0
// Programs under a profiling tool (pmpi_tool.c) that passes calls on by their PMPI_ names, on all ranks or on some:
// each call then enters the library twice on those ranks, and must count once.
#include <mpi.h>

#include <functional>
#include <vector>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// Collectives on `comm`, more than it takes until they go through shared memory.
void use(MPI_Comm comm) {
  watch_for_hang();
  constexpr int count = 3000;
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::vector<int> out(count), in(count), all(static_cast<std::size_t>(count * ranks));
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = rank + i + round;
    MPI_Allreduce(out.data(), in.data(), count, MPI_INT, MPI_MAX, comm);
    for (int i = 0; i < count; ++i) CHECK_EQUAL(ranks - 1 + i + round, in[static_cast<std::size_t>(i)]);
    if (rank == 0) in = out;
    MPI_Bcast(in.data(), count, MPI_INT, 0, comm);
    CHECK_EQUAL(round + count - 1, in.back());
    MPI_Request request;
    MPI_Iallgather(out.data(), count, MPI_INT, all.data(), count, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int of = 0; of < ranks; ++of) CHECK_EQUAL(of + round, all[static_cast<std::size_t>(of * count)]);
    MPI_Barrier(comm);
  }
}

void use_and_free(MPI_Comm comm) {
  use(comm);
  MPI_Comm_free(&comm);
}

MPI_CASE(world) { use(MPI_COMM_WORLD); }
MPI_CASE(dup) {
  for (int i = 0; i < 4; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use_and_free(comm);
  }
}
MPI_CASE(dup_with_info) {
  MPI_Comm comm;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  use_and_free(comm);
}
MPI_CASE(idup) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use_and_free(comm);
}
MPI_CASE(split) {
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank(), &comm);
  use_and_free(comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  use_and_free(comm);
}
MPI_CASE(create) {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm comm;
  MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
  use_and_free(comm);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm);
  use_and_free(comm);
  MPI_Group_free(&group);
}
MPI_CASE(cart) {
  const int ranks = world_size(), periodic = 1;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &comm);
  use(comm);
  std::vector<int> in(4000);
  const std::vector<int> out(2000, world_rank());
  for (int round = 0; round < 6; ++round) {
    MPI_Neighbor_allgather(out.data(), 2000, MPI_INT, in.data(), 2000, MPI_INT, comm);
    CHECK_EQUAL((world_rank() + 1) % ranks, in.back());
  }
  MPI_Comm_free(&comm);
}

void exchange(MPI_Datatype type) {
  watch_for_hang();
  if (world_rank() < 2) check_record_type(type);
}
MPI_CASE(contents_of_types) {
  // A handle that is counted twice is forgotten too late, one that is freed twice too early.
  for (int round = 0; round < 3; ++round) {
    MPI_Datatype type = make_record_type(), outer, inner, copy;
    MPI_Type_contiguous(1, type, &outer);
    MPI_Type_commit(&outer);
    int integer;
    MPI_Aint address;
    MPI_Type_get_contents(outer, 1, 0, 1, &integer, &address, &inner);
    MPI_Type_dup(type, &copy);
    MPI_Type_free(&type);
    exchange(inner);
    MPI_Type_free(&inner);
    MPI_Type_get_contents(outer, 1, 0, 1, &integer, &address, &inner);
    exchange(inner);
    MPI_Type_free(&inner);
    exchange(copy);
    MPI_Type_free(&copy);
    exchange(outer);
    MPI_Type_free(&outer);
  }
}

MPI_CASE(windows) {
  // The last of three windows still needs progress from ranks that wait.
  watch_for_hang();
  MPI_Win windows[3];
  int* memory[3];
  for (int i = 0; i < 3; ++i)
    MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &windows[i]);
  for (int i = 0; i < 2; ++i) MPI_Win_free(&windows[i]);
  const int next = (world_rank() + 1) % world_size(), value = world_rank();
  MPI_Win_fence(0, windows[2]);
  MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, windows[2]);
  MPI_Win_fence(0, windows[2]);
  CHECK_EQUAL((world_rank() + world_size() - 1) % world_size(), *memory[2]);
  use(MPI_COMM_WORLD);
  MPI_Win_free(&windows[2]);
}

#if MPI_VERSION >= 4
MPI_CASE(persistent_collectives) {
  watch_for_hang();
  constexpr int count = 4000;
  std::vector<int> data[2];
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) {
    data[i].resize(count);
    MPI_Bcast_init(data[i].data(), count, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  }
  for (int round = 0; round < 6; ++round) {
    for (std::vector<int>& one : data) one.assign(count, world_rank() == 0 ? round : -1);
    if (round % 2 == 0)
      MPI_Startall(2, requests);
    else
      for (MPI_Request& request : requests) MPI_Start(&request);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (const std::vector<int>& one : data) CHECK_EQUAL(round, one.back());
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}
#endif

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv); }
