// SPDX-License-Identifier: Apache-2.0
// Offsets, extents and counts beyond 32 bits. Address space is reserved, but only a few pages are touched.
#include <cstring>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

/// Sends the data that the type describes around the ring, from one large reserved address range to another.
void through_vast_space(const char* text, int count, std::size_t span) {
  const Ring ring;
  const TypeExpression type = type_from(text);
  CommittedType handle(type, Constructors::large);
  const auto runs = runs_of(*type_map(type), count, facts_of(type)->extent);
  VastSpace from(span), to(span);
  const auto content = [&](int rank) {
    std::size_t size = 0;
    for (const ByteRun& run : runs) size += static_cast<std::size_t>(run.length);
    return noise(size, outgoing_seed(rank));
  };
  const Bytes mine = content(ring.rank), expected = content(ring.previous);
  std::size_t at = 0;
  for (const ByteRun& run : runs) {
    std::memcpy(from.data() + run.offset, mine.data() + at, static_cast<std::size_t>(run.length));
    at += static_cast<std::size_t>(run.length);
  }
  Bytes packed(mine.size());
  int position = 0;
  MPI_Pack(from.data(), count, handle, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_WORLD);
  if (const auto wrong = difference(mine, packed)) fail_check(__FILE__, __LINE__, "packed " + *wrong);
  MPI_Sendrecv(from.data(), count, handle, ring.next, 1, to.data(), count, handle, ring.previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  Bytes arrived;
  for (const ByteRun& run : runs)
    arrived.insert(arrived.end(), to.data() + run.offset, to.data() + run.offset + run.length);
  if (const auto wrong = difference(expected, arrived)) fail_check(__FILE__, __LINE__, "received " + *wrong);
}

}  // namespace

MPI_CASE(stride_of_3_gib) { through_vast_space("hvector(3,100,3G,double)", 1, 7 * GiB); }

MPI_CASE(extent_of_5_gib) { through_vast_space("resized(0,5G,vector(50,1,3,int))", 3, 11 * GiB); }

MPI_CASE(displacements_beyond_32_bits) {
  through_vast_space("hindexed([7,9,11],[5G,17,2500000000],short)", 1, 6 * GiB);
}

MPI_CASE(array_beyond_32_bits) {
  through_vast_space("subarray([50000,100000],[3,4],[49990,99990],c,byte)", 1, 5 * GiB);
}

MPI_CASE(large_count_calls) {
  const Ring ring;
  for (const char* type : every_type) {
    const TypeExpression expression = type_from(type);
    TypedData out(expression, 2, outgoing_seed(ring.rank), 0, Constructors::large),
        in(expression, 2, incoming_seed, 0, Constructors::large);
    const Bytes expected = TypedData(expression, 2, outgoing_seed(ring.previous)).packed();
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv_c(in.address(), 2, in.type(), ring.previous, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend_c(out.address(), 2, out.type(), ring.next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    check_status(statuses[0], ring.previous, 1, in.type(), 2);
    in.expect(expected);
    MPI_Sendrecv_c(out.address(), 2, out.type(), ring.next, 2, in.address(), 2, in.type(), ring.previous, 2,
                   MPI_COMM_WORLD, &statuses[0]);
    MPI_Count count = 0;
    MPI_Get_count_c(&statuses[0], in.type(), &count);
    CHECK_EQUAL(2, count);
    in.expect(expected);
    MPI_Recv_init_c(in.address(), 2, in.type(), ring.previous, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init_c(out.address(), 2, out.type(), ring.next, 3, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 2; ++round) {
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      in.expect(expected);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    Bytes packed(expected.size());
    MPI_Count position = 0;
    MPI_Pack_c(out.address(), 2, out.type(), packed.data(), static_cast<MPI_Count>(packed.size()), &position,
               MPI_COMM_WORLD);
    CHECK_EQUAL(static_cast<MPI_Count>(packed.size()), position);
    if (const auto wrong = difference(out.packed(), packed)) fail_check(__FILE__, __LINE__, "packed " + *wrong);
    position = 0;
    MPI_Unpack_c(expected.data(), static_cast<MPI_Count>(expected.size()), &position, in.address(), 2, in.type(),
                 MPI_COMM_WORLD);
    in.expect(expected);
  }
}

MPI_CASE(count_beyond_an_int) {
  // 2^31 + 5 elements of one byte each, all at the same address (extent 0), sent to MPI_PROC_NULL.
  CommittedType type("resized(0,0,byte)");
  std::byte one{42};
  const int code = MPI_Send_c(&one, (MPI_Count{1} << 31) + 5, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  CHECK_EQUAL(MPI_SUCCESS, code);
  MPI_Count size = 0;
  MPI_Pack_size_c((MPI_Count{1} << 31) + 5, type, MPI_COMM_WORLD, &size);
  CHECK(size >= (MPI_Count{1} << 31) + 5);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
