// SPDX-License-Identifier: Apache-2.0
// The number of kernel launches: one for all messages of a call. The stand-in driver counts them.
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr std::size_t faces = 26;

void count_from_here() { driver_entry_as<void (*)(const char*)>("fake_cuda_fail")(""); }
int calls(const char* entry) { return driver_entry_as<int (*)(const char*)>("fake_cuda_calls")(entry); }
int launches() { return calls("cuLaunchKernel"); }

/// The messages of a halo exchange (faces, edges, corners), from this rank to itself.
struct Halo {
  Halo() {
    for (std::size_t i = 0; i < faces; ++i) {
      const std::string type = "vector(" + std::to_string(4 + i % 7) + "," + std::to_string(1 + i % 3) + ",8,double)";
      out.push_back(std::make_unique<TypedData>(type, 1, outgoing_seed(static_cast<int>(i))));
      in.push_back(std::make_unique<TypedData>(type, 1, incoming_seed));
    }
    // address() writes device memory, which must not be counted.
    for (std::size_t i = 0; i < faces; ++i) from[i] = out[i]->address(), to[i] = in[i]->address();
  }
  void irecvs() {
    for (std::size_t i = 0; i < faces; ++i)
      MPI_Irecv(to[i], 1, in[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD, &requests[i]);
  }
  void isends() {
    for (std::size_t i = 0; i < faces; ++i)
      MPI_Isend(from[i], 1, out[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD, &requests[faces + i]);
  }
  void check() {
    for (std::size_t i = 0; i < faces; ++i) in[i]->expect(out[i]->packed());
    for (std::size_t i = 0; i < faces; ++i) to[i] = in[i]->address();
  }
  std::vector<std::unique_ptr<TypedData>> out, in;
  std::array<void*, faces> from, to;
  std::array<MPI_Request, 2 * faces> requests;
};

/// Loads the module and creates the plans.
void warm_up() {
  Halo halo;
  halo.irecvs();
  halo.isends();
  MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

MPI_CASE(isends_posted_together) {
  warm_up();
  Halo halo;
  count_from_here();
  halo.irecvs();
  halo.isends();
  CHECK_EQUAL(0, launches());
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQUAL(1, launches());
  MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
  CHECK_EQUAL(2, launches());
  halo.check();
  for (const MPI_Request request : halo.requests) CHECK(request == MPI_REQUEST_NULL);
}

MPI_CASE(local_calls_between_isends) {
  warm_up();
  Halo halo;
  count_from_here();
  halo.irecvs();
  for (std::size_t i = 0; i < faces; ++i) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_size(halo.out[i]->type(), &size);
    (void)MPI_Wtime();
    MPI_Isend(halo.from[i], 1, halo.out[i]->type(), rank, static_cast<int>(i), MPI_COMM_WORLD,
              &halo.requests[faces + i]);
  }
  MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
  CHECK_EQUAL(2, launches());
  halo.check();
}

MPI_CASE(every_kind_of_nonblocking_send) {
  warm_up();
  Halo halo;
  count_from_here();
  halo.irecvs();
  for (std::size_t i = 0; i < faces; ++i) {
    const auto send = i % 3 == 0 ? MPI_Isend : i % 3 == 1 ? MPI_Issend : MPI_Irsend;
    send(halo.from[i], 1, halo.out[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD,
         &halo.requests[faces + i]);
  }
  CHECK_EQUAL(0, launches());
  MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
  CHECK_EQUAL(2, launches());
  halo.check();
}

MPI_CASE(startall) {
  Halo halo;
  for (std::size_t i = 0; i < faces; ++i) {
    MPI_Recv_init(halo.to[i], 1, halo.in[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD,
                  &halo.requests[i]);
    MPI_Send_init(halo.from[i], 1, halo.out[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD,
                  &halo.requests[faces + i]);
  }
  for (int round = 0; round < 3; ++round) {
    count_from_here();
    MPI_Startall(2 * faces, halo.requests.data());
    CHECK_EQUAL(1, launches());
    MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
    CHECK_EQUAL(2, launches());
    halo.check();
  }
  for (MPI_Request& request : halo.requests) MPI_Request_free(&request);
}

// With BESTRIDE_FORCE=gpu_graphs=always, or if the profile prefers graphs: the first start enqueues the calls one by
// one, the second creates the graph, and each later start is one driver call.
MPI_CASE(repeated_starts_are_one_graph_each) {
  const char* said = std::getenv("BESTRIDE_FORCE");
  if (!said) return;
  const bool graphs = std::strcmp(said, "gpu_graphs=always") == 0 || std::getenv("BESTRIDE_PROFILE");
  const auto single_calls = [] {
    return launches() + calls("cuMemcpyDtoHAsync_v2") + calls("cuMemcpyHtoDAsync_v2") + calls("cuMemcpy2DAsync_v2");
  };
  Halo halo;
  for (std::size_t i = 0; i < faces; ++i) {
    MPI_Recv_init(halo.to[i], 1, halo.in[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD,
                  &halo.requests[i]);
    MPI_Send_init(halo.from[i], 1, halo.out[i]->type(), world_rank(), static_cast<int>(i), MPI_COMM_WORLD,
                  &halo.requests[faces + i]);
  }
  for (int round = 0; round < 4; ++round) {
    count_from_here();
    MPI_Startall(2 * faces, halo.requests.data());
    CHECK_EQUAL(graphs && round > 0 ? 1 : 0, calls("cuGraphLaunch"));
    if (graphs && round > 1) CHECK_EQUAL(0, single_calls());
    MPI_Waitall(2 * faces, halo.requests.data(), MPI_STATUSES_IGNORE);
    CHECK_EQUAL(graphs && round > 0 ? 2 : 0, calls("cuGraphLaunch"));
    if (graphs && round > 1) CHECK_EQUAL(0, single_calls());
    if (!graphs) CHECK(single_calls() >= 2);
    halo.check();
  }
  CHECK_EQUAL(graphs ? 2 : 0, graphs ? calls("cuGraphLaunch") : calls("cuStreamBeginCapture_v2"));
  for (MPI_Request& request : halo.requests) MPI_Request_free(&request);
}

// An address that is freed and allocated again is other memory, so a sequence with the old memory is not replayed.
MPI_CASE(reused_address_is_not_a_repeated_call) {
  // The address within the allocation depends on the address of the host copy, so both are compared.
  std::set<std::pair<void*, void*>> before;
  int same = 0;
  for (int round = 0; round < 6 || (same == 0 && round < 1000); ++round) {
    const char* type = "vector(50,1,3,double)";
    TypedData out(type, 1, 1), in(type, 1, 2);
    void *from = out.address(), *to = in.address();
    same += !before.emplace(from, to).second;
    count_from_here();
    MPI_Sendrecv(from, 1, out.type(), world_rank(), 0, to, 1, in.type(), world_rank(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_EQUAL(0, calls("cuGraphLaunch"));
    in.expect(out.packed());
  }
  CHECK(same > 0);
}

MPI_CASE(neighbors) {
  warm_up();
  // In a ring of one rank, both neighbors are the rank itself.
  MPI_Comm ring;
  const int one = 1, periodic = 1;
  MPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &ring);
  TypedData out("vector(6,2,5,double)", 2, 1), in("vector(6,2,5,double)", 2, 2);
  void *from = out.address(), *to = in.address();
  count_from_here();
  MPI_Neighbor_alltoall(from, 1, out.type(), to, 1, in.type(), ring);
  CHECK_EQUAL(2, launches());
  const int counts[] = {1, 1};
  const MPI_Aint at[] = {0, 8 * 27};
  const MPI_Datatype types[] = {out.type(), out.type()};
  count_from_here();
  MPI_Neighbor_alltoallw(from, counts, at, types, to, counts, at, types, ring);
  CHECK_EQUAL(2, launches());
  MPI_Comm_free(&ring);
}

MPI_CASE(one_launch_for_each_of_two_devices) {
  const auto retain = driver_entry_as<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto make_current = driver_entry_as<int (*)(void*)>("cuCtxSetCurrent");
  const auto allocate = driver_entry_as<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2");
  const auto write = driver_entry_as<int (*)(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2");
  const auto read = driver_entry_as<int (*)(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2");
  constexpr std::size_t numbers = 64;
  CommittedType type("vector(32,1,2,double)");
  void* contexts[2] = {};
  std::uint64_t from[2] = {}, to[2] = {};
  std::array<std::array<double, numbers>, 2> sent{}, got{};
  for (int device = 0; device < 2; ++device) {
    CHECK(retain(&contexts[device], device) == 0 && make_current(contexts[device]) == 0);
    CHECK(allocate(&from[device], numbers * 8) == 0 && allocate(&to[device], numbers * 8) == 0);
    for (std::size_t i = 0; i < numbers; ++i)
      sent[static_cast<std::size_t>(device)][i] = static_cast<double>(100 * device) + static_cast<double>(i);
    CHECK(write(from[device], sent[static_cast<std::size_t>(device)].data(), numbers * 8) == 0);
    CHECK(write(to[device], got[0].data(), numbers * 8) == 0);
  }
  // From each device to the other, while no context is current.
  make_current(nullptr);
  for (int round = 0; round < 2; ++round) {
    MPI_Request requests[4];
    count_from_here();
    for (int device = 0; device < 2; ++device)
      MPI_Irecv(reinterpret_cast<void*>(to[device]), 1, type, world_rank(), 1 - device, MPI_COMM_WORLD,
                &requests[device]);
    for (int device = 0; device < 2; ++device)
      MPI_Isend(reinterpret_cast<void*>(from[device]), 1, type, world_rank(), device, MPI_COMM_WORLD,
                &requests[2 + device]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(4, launches());
  }
  for (int device = 0; device < 2; ++device) {
    make_current(contexts[device]);
    CHECK(read(got[static_cast<std::size_t>(device)].data(), to[device], numbers * 8) == 0);
    for (std::size_t i = 0; i < numbers; ++i)
      CHECK_EQUAL(i % 2 == 0 ? sent[static_cast<std::size_t>(1 - device)][i] : 0.0,
                  got[static_cast<std::size_t>(device)][i]);
  }
}

MPI_CASE(long_messages_are_packed_at_once) {
  const char* type = "vector(100000,1,2,double)";
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  MPI_Request requests[2];
  count_from_here();
  MPI_Irecv(to, 1, in.type(), world_rank(), 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from, 1, out.type(), world_rank(), 0, MPI_COMM_WORLD, &requests[1]);
  const int at_once = launches();
  CHECK(at_once >= 1);  // one, or one per chunk if the model chooses so
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(launches() > at_once);
  in.expect(out.packed());
}

MPI_CASE(single_contiguous_messages_need_no_launch) {
  TypedData out("double", 1000, 1), in("double", 1000, 2);
  void *from = out.address(), *to = in.address();
  count_from_here();
  MPI_Sendrecv(from, 1000, MPI_DOUBLE, world_rank(), 0, to, 1000, MPI_DOUBLE, world_rank(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQUAL(0, launches());
  in.expect(out.packed());
}

// BESTRIDE_STRATEGY=pipelined needs one launch per chunk of at least 256 KiB, staged needs one launch.
MPI_CASE(a_long_message_takes_one_launch_or_one_per_chunk) {
  const char* forced = std::getenv("BESTRIDE_STRATEGY");
  if (!forced) return;
  const char* type = "vector(700000,1,2,double)";  // 5.6 MB
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  count_from_here();
  MPI_Sendrecv(from, 1, out.type(), world_rank(), 0, to, 1, in.type(), world_rank(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (std::strcmp(forced, "pipelined") == 0)
    CHECK(launches() >= 4 && launches() <= 44 && launches() % 2 == 0);
  else
    CHECK_EQUAL(2, launches());
  in.expect(out.packed());
}

MPI_CASE(host_memory_needs_no_query_and_no_launch) {
  std::vector<double> from(200, 1.5), to(200);
  CommittedType type("vector(100,1,2,double)");
  count_from_here();
  MPI_Sendrecv(from.data(), 1, type, world_rank(), 0, to.data(), 1, type, world_rank(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQUAL(0, launches());
  CHECK_EQUAL(0, calls("cuStreamSynchronize") + calls("cuEventRecord") + calls("cuMemcpyDtoHAsync_v2"));
  CHECK(to[0] == 1.5 && to[1] == 0);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
