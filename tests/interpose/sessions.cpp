// SPDX-License-Identifier: Apache-2.0
// MPI through sessions only, without MPI_Init: messages and packing of derived types work, and no MPI function is
// called after the end of the last session.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int blocks = 1000, counts = 200;
int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED %s\n", what);
  ++failures;
}

std::vector<double> filled(int elements, double from) {
  std::vector<double> all(static_cast<std::size_t>(elements) * 2 * blocks);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = from + static_cast<double>(i);
  return all;
}

/// Each rank sends every second double to the next rank of the ring.
void exchange(MPI_Comm comm, MPI_Datatype type) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int round = 0; round < 3; ++round) {
    std::vector<double> out = filled(2, 1e6 * rank), in = filled(2, -1), expected = filled(2, -1);
    const std::vector<double> theirs = filled(2, 1e6 * previous);
    for (std::size_t i = 0; i < in.size(); i += 2) expected[i] = theirs[i];
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 2, type, previous, 1, comm, &requests[0]);
    MPI_Isend(out.data(), 2, type, next, 1, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in == expected, "a message");
  }
}

/// Packs with more counts than a thread's cache of plans can keep.
void pack_many_counts(MPI_Comm comm, MPI_Datatype type) {
  const std::vector<double> data = filled(counts, 0);
  std::vector<double> packed(static_cast<std::size_t>(counts) * blocks);
  for (int count = 1; count <= counts; ++count) {
    int position = 0;
    MPI_Pack(data.data(), count, type, packed.data(), static_cast<int>(packed.size() * sizeof(double)), &position,
             comm);
    check(position == count * blocks * 8 &&
              packed[static_cast<std::size_t>(position) / 8 - 1] == count * 2.0 * blocks - 2,
          "a pack");
  }
  // Messages with more counts than respelled types are kept.
  std::vector<double> in = filled(counts, 0);
  for (int count = 1; count <= counts; ++count)
    MPI_Sendrecv(data.data(), count, type, 0, 2, in.data(), count, type, 0, 2, comm, MPI_STATUS_IGNORE);
}

void once() {
  MPI_Session session;
  check(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS, "MPI_Session_init");
  MPI_Group world, self;
  MPI_Comm all, alone;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Comm_create_from_group(world, "org.bestride.test.all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all);
  MPI_Group_from_session_pset(session, "mpi://SELF", &self);
  MPI_Comm_create_from_group(self, "org.bestride.test.alone", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &alone);
  MPI_Datatype type, kept;
  MPI_Type_vector(blocks, 1, 2, MPI_DOUBLE, &kept);
  MPI_Type_create_resized(kept, 0, 2 * blocks * 8, &type);
  MPI_Type_free(&kept);
  MPI_Type_commit(&type);
  exchange(all, type);
  pack_many_counts(alone, type);
  MPI_Type_free(&type);
  MPI_Group_free(&world);
  MPI_Group_free(&self);
  MPI_Comm_free(&all);
  MPI_Comm_free(&alone);
  MPI_Session_finalize(&session);
}

}  // namespace

int main() {
  // The thread ends, and frees its plans, after MPI has ended.
  std::thread(once).join();
  std::printf("%s\n", failures == 0 ? "passed" : "failed");
  return failures == 0 ? 0 : 1;
}
