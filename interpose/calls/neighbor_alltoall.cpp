// SPDX-License-Identifier: Apache-2.0
// MPI_Neighbor_alltoall and MPI_Neighbor_alltoallv in all forms.
#include <tuple>

#include "interpose/calls/entry.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/packed_blocks.hpp"

namespace bestride {
namespace {

/// MPI_Neighbor_alltoall: block i starts i * count extents from the start of the buffer, in both directions.
template <auto slot, class Count, class... Tail>
int alltoall(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
             Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, std::int64_t>;
  using Work = CollectiveCompletion<Blocks, Blocks>;
  Work* exchange = nullptr;
  bool no_memory = false;
  const Neighbours* neighbours = neighbours_of(comm);
  if (neighbours && (find_candidate(send_type) || find_candidate(receive_type) || gpu_runtime_detected()) &&
      (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>(
        [&](Work& work) {
          const auto prepare = [&](Blocks& blocks, CallKind kind, const void* base, Count count, MPI_Datatype type,
                                   const std::vector<int>& ranks) {
            return blocks.prepare(
                kind, base, [count](std::size_t) { return std::int64_t{count}; },
                [count](std::size_t i) { return static_cast<std::int64_t>(i) * count; }, type, ranks, comm,
                persistent<Tail...>);
          };
          const bool out =
              prepare(work.out, CallKind::send, send_buffer, send_count, send_type, neighbours->destinations);
          const bool in =
              prepare(work.in, CallKind::receive, receive_buffer, receive_count, receive_type, neighbours->sources);
          if (reporting()) [[unlikely]] {
            work.out.record_in_report(id);
            work.in.record_in_report(id);
          }
          return out || in || work.refused();
        },
        &no_memory);
  if (!exchange) {
    if (no_memory)
      if (const int error =
              refuse_device_memory(comm, {{send_buffer, 1, send_type}, {receive_buffer, 1, receive_type}});
          error != MPI_SUCCESS)
        return error;
    const int error =
        (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
    return error;
  }
  if (exchange->out) {
    send_buffer = exchange->out.buffer();
    send_count = exchange->out.counts()[0];
    send_type = exchange->out.type();
  }
  if (exchange->in) {
    receive_buffer = exchange->in.buffer();
    receive_count = exchange->in.counts()[0];
    receive_type = exchange->in.type();
  }
  return call_and_complete(
      exchange,
      [&](const Work&) {
        return (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type, comm,
                            tail...);
      },
      tail...);
}

template <auto slot, class Count, class Displacement, class... Tail>
int alltoallv(CallId id, const void* send_buffer, const Count* send_counts, const Displacement* send_at,
              MPI_Datatype send_type, void* receive_buffer, const Count* receive_counts, const Displacement* receive_at,
              MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, Displacement>;
  using Work = CollectiveCompletion<Blocks, Blocks>;
  Work* exchange = nullptr;
  bool no_memory = false;
  const Neighbours* neighbours = neighbours_of(comm);
  if (neighbours && send_counts && send_at && receive_counts && receive_at &&
      (find_candidate(send_type) || find_candidate(receive_type) || gpu_runtime_detected()) &&
      (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>(
        [&](Work& work) {
          const auto prepare = [&](Blocks& blocks, CallKind kind, const void* base, const Count* counts,
                                   const Displacement* at, MPI_Datatype type, const std::vector<int>& ranks) {
            return blocks.prepare(
                kind, base, [counts](std::size_t i) { return std::int64_t{counts[i]}; },
                [at](std::size_t i) { return std::int64_t{at[i]}; }, type, ranks, comm, persistent<Tail...>);
          };
          const bool out =
              prepare(work.out, CallKind::send, send_buffer, send_counts, send_at, send_type, neighbours->destinations);
          const bool in = prepare(work.in, CallKind::receive, receive_buffer, receive_counts, receive_at, receive_type,
                                  neighbours->sources);
          if (reporting()) [[unlikely]] {
            work.out.record_in_report(id);
            work.in.record_in_report(id);
          }
          return out || in || work.refused();
        },
        &no_memory);
  if (!exchange) {
    if (no_memory)
      if (const int error =
              refuse_device_memory(comm, {{send_buffer, 1, send_type}, {receive_buffer, 1, receive_type}});
          error != MPI_SUCCESS)
        return error;
    const int error = (next.*slot)(send_buffer, send_counts, send_at, send_type, receive_buffer, receive_counts,
                                   receive_at, receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
    return error;
  }
  return call_and_complete(
      exchange,
      [&](const Work& work) {
        const auto& [out, in] = std::tie(work.out, work.in);
        return (next.*slot)(out ? out.buffer() : send_buffer, out ? out.counts() : send_counts,
                            out ? out.displacements() : send_at, out ? out.type() : send_type,
                            in ? in.buffer() : receive_buffer, in ? in.counts() : receive_counts,
                            in ? in.displacements() : receive_at, in ? in.type() : receive_type, comm, tail...);
      },
      tail...);
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_ALLTOALL_ENTRY(name, Count, Displacement, rest, rest_names)                               \
  BESTRIDE_ENTRY(name, alltoall,                                                                           \
                 (const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer, \
                  Count receive_count, MPI_Datatype receive_type, MPI_Comm comm BESTRIDE_UNWRAP rest),     \
                 (send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type,         \
                  comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_ALLTOALLV_ENTRY(name, Count, Displacement, rest, rest_names)                                     \
  BESTRIDE_ENTRY(name, alltoallv,                                                                                 \
                 (const void* send_buffer, const Count* send_counts, const Displacement* send_at,                 \
                  MPI_Datatype send_type, void* receive_buffer, const Count* receive_counts,                      \
                  const Displacement* receive_at, MPI_Datatype receive_type, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (send_buffer, send_counts, send_at, send_type, receive_buffer, receive_counts, receive_at,       \
                  receive_type, comm BESTRIDE_UNWRAP rest_names))

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALL_ENTRY, Neighbor_alltoall, Ineighbor_alltoall)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALLV_ENTRY, Neighbor_alltoallv, Ineighbor_alltoallv)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_ALLTOALL_ENTRY, Neighbor_alltoall)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_ALLTOALLV_ENTRY, Neighbor_alltoallv)
