// SPDX-License-Identifier: Apache-2.0
// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv in all forms.
#include "interpose/calls/entry.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/packed_blocks.hpp"

namespace bestride {
namespace {

/// The send endpoint of an allgather: one message to all neighbours.
struct OneMessage {
  SendEndpoint side;
  void fill() noexcept { side.fill(); }
  void release() noexcept { side.release(); }
  bool refused() const noexcept { return side.refused(); }
  int raise() const { return side.raise(); }
};

template <class Count>
bool prepare_one(OneMessage& out, const void* buffer, Count count, MPI_Datatype type, MPI_Comm comm,
                 bool reused) noexcept {
  TypeEntry* entry = gpu_runtime_detected() ? type_entry_or_opaque(type) : find_candidate(type);
  if (!entry) return false;
  if (reused) entry->expect_reuse();
  return out.side.prepare(buffer, count, entry, MPI_ANY_SOURCE, comm, largest_count<Count>);
}

template <auto slot, class Count, class... Tail>
int allgather(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
              Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Tail... tail) {
  using Blocks = PackedBlocks<Count, std::int64_t>;
  using Work = CollectiveCompletion<OneMessage, Blocks>;
  Work* exchange = nullptr;
  bool no_memory = false;
  const Neighbours* neighbours = neighbours_of(comm);
  bool out = false;
  if (neighbours && (find_candidate(send_type) || find_candidate(receive_type) || gpu_runtime_detected()) &&
      (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>(
        [&](Work& work) {
          out = prepare_one(work.out, send_buffer, send_count, send_type, comm, persistent<Tail...>);
          const bool in = work.in.prepare(
              CallKind::receive, receive_buffer, [&](std::size_t) { return std::int64_t{receive_count}; },
              [&](std::size_t i) { return static_cast<std::int64_t>(i) * receive_count; }, receive_type,
              neighbours->sources, comm, persistent<Tail...>);
          if (reporting()) [[unlikely]] {
            record(id, work.out.side, 0);
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
  if (out) {
    send_buffer = exchange->out.side.buffer();
    send_count = static_cast<Count>(exchange->out.side.count());
    send_type = exchange->out.side.type();
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
int allgatherv(CallId id, const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,
               const Count* receive_counts, const Displacement* receive_at, MPI_Datatype receive_type, MPI_Comm comm,
               Tail... tail) {
  using Work = CollectiveCompletion<OneMessage, PackedBlocks<Count, Displacement>>;
  Work* exchange = nullptr;
  bool no_memory = false;
  const Neighbours* neighbours = neighbours_of(comm);
  bool out = false;
  if (neighbours && receive_counts && receive_at &&
      (find_candidate(send_type) || find_candidate(receive_type) || gpu_runtime_detected()) &&
      (blocking<Tail...> || request_of(tail...)))
    exchange = try_exchange<Work>(
        [&](Work& work) {
          out = prepare_one(work.out, send_buffer, send_count, send_type, comm, persistent<Tail...>);
          const bool in = work.in.prepare(
              CallKind::receive, receive_buffer, [&](std::size_t i) { return std::int64_t{receive_counts[i]}; },
              [&](std::size_t i) { return std::int64_t{receive_at[i]}; }, receive_type, neighbours->sources, comm,
              persistent<Tail...>);
          if (reporting()) [[unlikely]] {
            record(id, work.out.side, 0);
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
    const int error = (next.*slot)(send_buffer, send_count, send_type, receive_buffer, receive_counts, receive_at,
                                   receive_type, comm, tail...);
    if (error == MPI_SUCCESS) runtime().comms.add_valid(comm);
    return error;
  }
  if (out) {
    send_buffer = exchange->out.side.buffer();
    send_count = static_cast<Count>(exchange->out.side.count());
    send_type = exchange->out.side.type();
  }
  return call_and_complete(
      exchange,
      [&](const Work& work) {
        const auto& in = work.in;
        return (next.*slot)(send_buffer, send_count, send_type, in ? in.buffer() : receive_buffer,
                            in ? in.counts() : receive_counts, in ? in.displacements() : receive_at,
                            in ? in.type() : receive_type, comm, tail...);
      },
      tail...);
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_ALLGATHER_ENTRY(name, Count, Displacement, rest, rest_names)                              \
  BESTRIDE_ENTRY(name, allgather,                                                                          \
                 (const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer, \
                  Count receive_count, MPI_Datatype receive_type, MPI_Comm comm BESTRIDE_UNWRAP rest),     \
                 (send_buffer, send_count, send_type, receive_buffer, receive_count, receive_type,         \
                  comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_ALLGATHERV_ENTRY(name, Count, Displacement, rest, rest_names)                                  \
  BESTRIDE_ENTRY(name, allgatherv,                                                                              \
                 (const void* send_buffer, Count send_count, MPI_Datatype send_type, void* receive_buffer,      \
                  const Count* receive_counts, const Displacement* receive_at, MPI_Datatype receive_type,       \
                  MPI_Comm comm BESTRIDE_UNWRAP rest),                                                          \
                 (send_buffer, send_count, send_type, receive_buffer, receive_counts, receive_at, receive_type, \
                  comm BESTRIDE_UNWRAP rest_names))

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHER_ENTRY, Neighbor_allgather, Ineighbor_allgather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLGATHERV_ENTRY, Neighbor_allgatherv, Ineighbor_allgatherv)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_ALLGATHER_ENTRY, Neighbor_allgather)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_ALLGATHERV_ENTRY, Neighbor_allgatherv)
