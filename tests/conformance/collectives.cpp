// SPDX-License-Identifier: Apache-2.0
// Collectives of derived types, of predefined types with displacements in elements, and neighborhood collectives.
#include <functional>
#include <memory>

#include "tests/support/typed_data.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

using namespace bestride::test;

namespace {

/// A communicator with a ring topology.
MPI_Comm ring_topology() {
  const Ring ring;
  const int periodic = 1;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ring.size, &periodic, 0, &comm);
  return comm;
}

/// The packed bytes of `count` elements of the type on `rank`.
Bytes packed_of(const char* type, int count, int rank) { return outgoing(type, count, rank).packed(); }

Bytes part(const Bytes& all, int from, int parts) {
  const std::size_t one = all.size() / static_cast<std::size_t>(parts);
  return {all.begin() + static_cast<std::ptrdiff_t>(one) * from,
          all.begin() + static_cast<std::ptrdiff_t>(one) * (from + 1)};
}

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

MPI_CASE(broadcast) {
  const Ring ring;
  for (const char* type : every_type)
    for (int root = 0; root < ring.size; ++root) {
      TypedData data = ring.rank == root ? TypedData(type, 2, outgoing_seed(root)) : TypedData(type, 2, incoming_seed);
      MPI_Bcast(data.address(), 2, data.type(), root, MPI_COMM_WORLD);
      if (ring.rank == root)
        data.expect_untouched();
      else
        data.expect(packed_of(type, 2, root));
    }
}

MPI_CASE(gather_and_scatter) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData mine = outgoing(type, 1, ring.rank), all = incoming(type, ring.size);
    MPI_Gather(mine.address(), 1, mine.type(), all.address(), 1, all.type(), 0, MPI_COMM_WORLD);
    if (ring.rank == 0) {
      Bytes expected;
      for (int r = 0; r < ring.size; ++r) append(expected, packed_of(type, 1, r));
      all.expect(expected);
    } else {
      all.expect_untouched();
    }
    TypedData from = outgoing(type, ring.size, 0), to = incoming(type, 1);
    MPI_Scatter(from.address(), 1, from.type(), to.address(), 1, to.type(), 0, MPI_COMM_WORLD);
    to.expect(part(packed_of(type, ring.size, 0), ring.rank, ring.size));
  }
}

MPI_CASE(allgather) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData mine = outgoing(type, 1, ring.rank), all = incoming(type, ring.size);
    MPI_Allgather(mine.address(), 1, mine.type(), all.address(), 1, all.type(), MPI_COMM_WORLD);
    Bytes expected;
    for (int r = 0; r < ring.size; ++r) append(expected, packed_of(type, 1, r));
    all.expect(expected);
  }
}

MPI_CASE(alltoall_transpose) {
  // The transpose of a distributed matrix: each rank sends columns and receives rows.
  const Ring ring;
  constexpr int rows = 12;
  const std::string columns = "resized(0,16,vector(12,1," + std::to_string(ring.size) + ",double_complex))";
  TypedData out(columns, ring.size, outgoing_seed(ring.rank)), in("double_complex", rows * ring.size, incoming_seed);
  MPI_Alltoall(out.address(), 1, out.type(), in.address(), rows, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
  Bytes expected;
  for (int r = 0; r < ring.size; ++r)
    append(expected, part(TypedData(columns, ring.size, outgoing_seed(r)).packed(), ring.rank, ring.size));
  in.expect(expected);
}

MPI_CASE(alltoallv_of_floats) {
  const Ring ring;
  // Rank r sends r + s + 1 floats to rank s. All displacements are different.
  const auto length = [](int from, int to) { return from + to + 1; };
  const auto place = [&](int rank, bool sending) {
    std::vector<int> counts, at;
    int next = 3;
    for (int other = 0; other < ring.size; ++other) {
      counts.push_back(sending ? length(rank, other) : length(other, rank));
      at.push_back(next);
      next += counts.back() + 2;
    }
    return std::pair{counts, at};
  };
  const auto type_of = [](const std::pair<std::vector<int>, std::vector<int>>& places) {
    return indexed(Numbers(places.first.begin(), places.first.end()),
                   Numbers(places.second.begin(), places.second.end()), named("float"));
  };
  const auto out_places = place(ring.rank, true), in_places = place(ring.rank, false);
  TypedData out(type_of(out_places), 1, outgoing_seed(ring.rank)), in(type_of(in_places), 1, incoming_seed);
  MPI_Alltoallv(out.address(), out_places.first.data(), out_places.second.data(), MPI_FLOAT, in.address(),
                in_places.first.data(), in_places.second.data(), MPI_FLOAT, MPI_COMM_WORLD);
  Bytes expected;
  for (int r = 0; r < ring.size; ++r) {
    const Bytes theirs = TypedData(type_of(place(r, true)), 1, outgoing_seed(r)).packed();
    std::size_t at = 0;
    for (int s = 0; s < ring.rank; ++s) at += 4 * static_cast<std::size_t>(length(r, s));
    const std::size_t size = 4 * static_cast<std::size_t>(length(r, ring.rank));
    expected.insert(expected.end(), theirs.begin() + static_cast<std::ptrdiff_t>(at),
                    theirs.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  in.expect(expected);
  out.expect_untouched();
}

MPI_CASE(alltoallw) {
  const Ring ring;
  // The same type for all ranks, with displacements in bytes.
  for (const char* type : every_type) {
    const Facts facts = *facts_of(type_from(type));
    const std::int64_t step = facts.high + 24;
    Numbers bytes;
    for (int r = 0; r < ring.size; ++r) bytes.push_back(r * step);
    const TypeExpression all = hindexed_block(1, bytes, type_from(type));
    TypedData out(all, 1, outgoing_seed(ring.rank)), in(all, 1, incoming_seed);
    CommittedType one(type_from(type));
    const std::vector<int> counts(static_cast<std::size_t>(ring.size), 1), at(bytes.begin(), bytes.end());
    const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ring.size), one);
    MPI_Alltoallw(out.address(), counts.data(), at.data(), types.data(), in.address(), counts.data(), at.data(),
                  types.data(), MPI_COMM_WORLD);
    Bytes expected;
    for (int r = 0; r < ring.size; ++r)
      append(expected, part(TypedData(all, 1, outgoing_seed(r)).packed(), ring.rank, ring.size));
    in.expect(expected);
  }
}

MPI_CASE(neighbor_alltoallw) {
  // Halo exchange in one dimension: both faces of a slab, sent and received in the same array.
  const MPI_Comm comm = ring_topology();
  const Ring ring(comm);
  const char* layers[] = {"subarray([8,6,5],[8,6,1],[0,0,1],c,double)", "subarray([8,6,5],[8,6,1],[0,0,3],c,double)",
                          "subarray([8,6,5],[8,6,1],[0,0,0],c,double)", "subarray([8,6,5],[8,6,1],[0,0,4],c,double)"};
  std::vector<std::unique_ptr<CommittedType>> types;
  for (const char* layer : layers) types.push_back(std::make_unique<CommittedType>(layer));
  const MPI_Datatype send_types[] = {*types[0], *types[1]}, receive_types[] = {*types[2], *types[3]};
  const int counts[] = {1, 1};
  const MPI_Aint at[] = {0, 0};
  const auto runs_in = [&](int layer) { return runs_of(*type_map(type_from(layers[layer]))); };
  const auto array_of = [&](int rank) { return Buffer(0, 8 * 6 * 5 * 8, outgoing_seed(rank)); };
  Buffer mine = array_of(ring.rank), expected = mine;
  // The upper inner layer of the rank below arrives in the lower halo, and the lower inner layer of the rank above in
  // the upper halo. With one or two ranks, both neighbors are the same rank, and the MPI library decides which layer
  // arrives where.
  MPI_Neighbor_alltoallw(mine.origin(), counts, at, send_types, mine.origin(), counts, at, receive_types, comm);
  if (ring.size > 2) {
    expected.scatter(runs_in(2), array_of(ring.previous).gather(runs_in(1)));
    expected.scatter(runs_in(3), array_of(ring.next).gather(runs_in(0)));
    if (const auto wrong = mine.difference(expected)) fail_check(__FILE__, __LINE__, "halo " + *wrong);
  } else {
    const Buffer other = array_of(ring.next);
    const Bytes low = mine.gather(runs_in(2)), high = mine.gather(runs_in(3));
    const Bytes one = other.gather(runs_in(0)), two = other.gather(runs_in(1));
    CHECK((low == one && high == two) || (low == two && high == one));
    expected.scatter(runs_in(2), low);
    expected.scatter(runs_in(3), high);
    if (const auto wrong = mine.difference(expected)) fail_check(__FILE__, __LINE__, "inside " + *wrong);
  }
  MPI_Comm free_this = comm;
  MPI_Comm_free(&free_this);
}

MPI_CASE(neighbor_alltoall_on_a_graph) {
  const Ring ring;
  // Every rank receives from the previous rank and sends to the next.
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &ring.previous, MPI_UNWEIGHTED, 1, &ring.next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &comm);
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 2);
    MPI_Neighbor_alltoall(out.address(), 2, out.type(), in.address(), 2, in.type(), comm);
    in.expect(packed_of(type, 2, ring.previous));
    const int counts = 2, at = 0;
    MPI_Neighbor_alltoallv(out.address(), &counts, &at, out.type(), in.address(), &counts, &at, in.type(), comm);
    in.expect(packed_of(type, 2, ring.previous));
    MPI_Request request;
    MPI_Ineighbor_allgather(out.address(), 2, out.type(), in.address(), 2, in.type(), comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    in.expect(packed_of(type, 2, ring.previous));
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(nonblocking_broadcast_and_point_to_point_together) {
  const Ring ring;
  for (const char* type : every_type) {
    TypedData shared = ring.rank == 0 ? TypedData(type, 1, outgoing_seed(0)) : TypedData(type, 1, incoming_seed);
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Request requests[3];
    MPI_Irecv(in.address(), 1, in.type(), ring.previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(shared.address(), 1, shared.type(), 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out.address(), 1, out.type(), ring.next, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    in.expect(packed_of(type, 1, ring.previous));
    if (ring.rank == 0)
      shared.expect_untouched();
    else
      shared.expect(packed_of(type, 1, 0));
  }
}

MPI_CASE(reduce_gives_the_same_bits) {
  const Ring ring;
  std::vector<double> mine(1000), sum(1000), again(1000);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = 1.0 / (1.0 + static_cast<double>(i) + 1000.0 * ring.rank);
  MPI_Allreduce(mine.data(), sum.data(), 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Allreduce(mine.data(), again.data(), 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == again);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
