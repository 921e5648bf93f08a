// SPDX-License-Identifier: Apache-2.0
// Messages of device memory do not leak: the size of the process does not depend on their number. Two ranks.
#include <unistd.h>

#include <array>
#include <cstdio>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr int warm_up = 500, rounds = 4000;
/// Growth of the whole process, as much as a leak of 100 bytes per message.
constexpr long allowed_kib = 400;

long resident_kib() {
  long all = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld %ld", &all, &resident) != 2)
    fail_check(__FILE__, __LINE__, "no /proc/self/statm");
  if (file) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int peer() { return 1 - world_rank(); }

template <class Once>
void leaves_nothing(Once once) {
  for (int i = 0; i < warm_up; ++i) once();
  const long before = resident_kib();
  for (int i = 0; i < rounds; ++i) once();
  const long grown = resident_kib() - before;
  if (grown > allowed_kib)
    fail_check(__FILE__, __LINE__,
               "grown by " + std::to_string(grown) + " KiB in " + std::to_string(rounds) + " rounds");
}

struct Data {
  TypedData out{"vector(20,1,3,double)", 1, 1}, in{"vector(20,1,3,double)", 1, 2};
  void check() { in.expect(out.packed()); }
};

}  // namespace

MPI_CASE(isend) {
  Data data;
  leaves_nothing([&] {
    MPI_Request request;
    MPI_Isend(data.out.address(), 1, data.out.type(), peer(), 0, MPI_COMM_WORLD, &request);
    MPI_Recv(data.in.address(), 1, data.in.type(), peer(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  data.check();
}

MPI_CASE(a_request_that_is_freed) {
  Data data;
  leaves_nothing([&] {
    MPI_Request request;
    MPI_Isend(data.out.address(), 1, data.out.type(), peer(), 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(data.in.address(), 1, data.in.type(), peer(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  data.check();
}

MPI_CASE(persistent) {
  Data data;
  leaves_nothing([&] {
    std::array<MPI_Request, 2> requests;
    MPI_Send_init(data.out.address(), 1, data.out.type(), peer(), 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(data.in.address(), 1, data.in.type(), peer(), 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests.data());
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  });
  data.check();
}

// A collective that synchronizes the ranks: a root that is ahead would fill the memory of the others.
MPI_CASE(a_collective) {
  TypedData out{"vector(20,1,3,double)", 1, 1}, in{"vector(20,1,3,double)", 2, 2};
  leaves_nothing([&] {
    MPI_Request request;
    MPI_Iallgather(out.address(), 1, out.type(), in.address(), 1, in.type(), MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  std::vector<std::byte> both = out.packed();
  both.insert(both.end(), both.begin(), both.end());
  in.expect(both);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
