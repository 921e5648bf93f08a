// SPDX-License-Identifier: Apache-2.0
// Neighbor collectives with device memory on either side, in every form, compared with the same call with host
// memory; on a ring and on a line, whose ends have only one neighbor.
#include <functional>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr int blocks = 2;

struct Sides {
  void* from;
  MPI_Datatype send_type;
  void* to;
  MPI_Datatype receive_type;
  MPI_Aint extent;
  MPI_Comm comm;
};
/// `request`: null for the blocking form. `init`: the persistent form.
using Call = std::function<void(const Sides&, MPI_Request* request, bool init)>;

// Blocks of two and one elements, in reverse order. The left neighbor sends the block for its right side. On a ring of
// one or two ranks both neighbors are the same rank, and MPI libraries differ in which of its blocks arrives where, so
// there the blocks have equal lengths.
int counts[] = {2, 1}, at[] = {1, 0};
int in_counts[] = {1, 2}, in_at[] = {2, 0};

const std::pair<const char*, Call> calls[] = {
    {"allgather",
     [](const Sides& s, MPI_Request* r, bool init) {
       if (!r)
         MPI_Neighbor_allgather(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm);
       else if (!init)
         MPI_Ineighbor_allgather(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm, r);
#if MPI_VERSION >= 4
       else
         MPI_Neighbor_allgather_init(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm, MPI_INFO_NULL, r);
#endif
     }},
    {"allgatherv",
     [](const Sides& s, MPI_Request* r, bool init) {
       static const int one_each[] = {1, 1}, places[] = {2, 0};
       if (!r)
         MPI_Neighbor_allgatherv(s.from, 1, s.send_type, s.to, one_each, places, s.receive_type, s.comm);
       else if (!init)
         MPI_Ineighbor_allgatherv(s.from, 1, s.send_type, s.to, one_each, places, s.receive_type, s.comm, r);
#if MPI_VERSION >= 4
       else
         MPI_Neighbor_allgatherv_init(s.from, 1, s.send_type, s.to, one_each, places, s.receive_type, s.comm,
                                      MPI_INFO_NULL, r);
#endif
     }},
    {"alltoall",
     [](const Sides& s, MPI_Request* r, bool init) {
       if (!r)
         MPI_Neighbor_alltoall(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm);
       else if (!init)
         MPI_Ineighbor_alltoall(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm, r);
#if MPI_VERSION >= 4
       else
         MPI_Neighbor_alltoall_init(s.from, 1, s.send_type, s.to, 1, s.receive_type, s.comm, MPI_INFO_NULL, r);
#endif
     }},
    {"alltoallv",
     [](const Sides& s, MPI_Request* r, bool init) {
       if (!r)
         MPI_Neighbor_alltoallv(s.from, counts, at, s.send_type, s.to, in_counts, in_at, s.receive_type, s.comm);
       else if (!init)
         MPI_Ineighbor_alltoallv(s.from, counts, at, s.send_type, s.to, in_counts, in_at, s.receive_type, s.comm, r);
#if MPI_VERSION >= 4
       else
         MPI_Neighbor_alltoallv_init(s.from, counts, at, s.send_type, s.to, in_counts, in_at, s.receive_type, s.comm,
                                     MPI_INFO_NULL, r);
#endif
     }},
    {"alltoallw",
     [](const Sides& s, MPI_Request* r, bool init) {
       static MPI_Aint from_at[2], to_at[2];
       static MPI_Datatype from_types[2], to_types[2];
       for (int i = 0; i < blocks; ++i) {
         from_at[i] = at[i] * s.extent, to_at[i] = in_at[i] * s.extent;
         from_types[i] = s.send_type, to_types[i] = s.receive_type;
       }
       if (!r)
         MPI_Neighbor_alltoallw(s.from, counts, from_at, from_types, s.to, in_counts, to_at, to_types, s.comm);
       else if (!init)
         MPI_Ineighbor_alltoallw(s.from, counts, from_at, from_types, s.to, in_counts, to_at, to_types, s.comm, r);
#if MPI_VERSION >= 4
       else
         MPI_Neighbor_alltoallw_init(s.from, counts, from_at, from_types, s.to, in_counts, to_at, to_types, s.comm,
                                     MPI_INFO_NULL, r);
#endif
     }},
};

enum class Form { blocking, nonblocking, persistent };

/// The contents of the receive buffer after the call.
Buffer result(const Call& call, Form form, const char* type, MemoryPlace out_place, MemoryPlace in_place,
              MPI_Comm comm) {
  set_memory_place(out_place);
  TypedData out = outgoing(type, 4, world_rank());
  set_memory_place(in_place);
  TypedData in = incoming(type, 4);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(out.type(), &lower, &extent);
  const Sides sides{out.address(), out.type(), in.address(), in.type(), extent, comm};
  MPI_Request request = MPI_REQUEST_NULL;
  call(sides, form == Form::blocking ? nullptr : &request, form == Form::persistent);
  if (form == Form::persistent) {
    for (int round = 0; round < 2; ++round) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
  } else if (form == Form::nonblocking) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  in.fetch();
  out.expect_untouched();
  return in.buffer();
}

void all_on(bool periodic, Form form) {
  int size = world_size();
  const bool one_process = periodic && size <= 2;
  counts[1] = one_process ? 2 : 1, at[0] = one_process ? 2 : 1;
  in_counts[0] = one_process ? 2 : 1, in_counts[1] = 2;
  in_at[0] = 2, in_at[1] = 0;
  const int wraps = periodic;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &wraps, 0, &comm);
  for (const auto& [name, call] : calls)
    for (const char* type :
         {"double", "vector(40,3,5,float)", "resized(0,40,struct([1,1,3],[0,8,17],[double,int,char]))"}) {
      const Buffer expected = result(call, form, type, MemoryPlace::host, MemoryPlace::host, comm);
      for (const MemoryPlace out : {MemoryPlace::device, MemoryPlace::host, MemoryPlace::managed})
        for (const MemoryPlace in : {MemoryPlace::device, MemoryPlace::host, MemoryPlace::pinned})
          if (const auto wrong = result(call, form, type, out, in, comm).difference(expected))
            fail_check(__FILE__, __LINE__,
                       std::string(name) + " of " + type + ", memory " + std::to_string(static_cast<int>(out)) +
                           " to " + std::to_string(static_cast<int>(in)) + ": " + *wrong);
    }
  MPI_Comm_free(&comm);
}

}  // namespace

MPI_CASE(ring) { all_on(true, Form::blocking); }
MPI_CASE(line) { all_on(false, Form::blocking); }
MPI_CASE(ring_nonblocking) { all_on(true, Form::nonblocking); }
MPI_CASE(line_nonblocking) { all_on(false, Form::nonblocking); }
#if MPI_VERSION >= 4
MPI_CASE(ring_persistent) { all_on(true, Form::persistent); }
#endif

int main(int argc, char** argv) { return run_cases(argc, argv); }
