// SPDX-License-Identifier: Apache-2.0
// MPI_Alltoallw and MPI_Neighbor_alltoallw: one exchange, between all ranks or between neighbours. No MPI_Alltoallw_init:
// entries_collective.cpp says why.
#include "interpose/back/entries.hpp"
#include "interpose/back/exchange.hpp"
#include "interpose/back/gpu/stage_moved.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/typed_blocks.hpp"

namespace bestride {
namespace {

template <class Blocks>
void note_all(CallId id, const Blocks& blocks) noexcept {
  for (const auto& side : blocks.sides())
    if (side.plan()) note(id, side, 0);
}

/// The user's arguments of one direction.
template <class Count, class Displacement>
struct Given {
  const Count* counts;
  const Displacement* at;
  const MPI_Datatype* types;

  bool whole() const noexcept { return counts && at && types; }
  /// Some block may be handed to MPI otherwise. `all`: every type that is no plain one is looked at further.
  bool may_gain(CallKind kind, const Peers& peers, CommEntry& comm, Manner manner, bool all) const noexcept {
    for (std::size_t i = 0; i < peers.count; ++i)
      if (TypeEntry* entry = worth_a_look(types[i], counts[i]))
        if (all || gpu_in_play() || bestride::may_gain(*entry, counts[i], kind, peers[i], comm, manner)) return true;
    return false;
  }
};

/// `known`: nullptr: the call is forwarded.
template <auto slot, class Count, class Displacement, class... Tail>
int exchange_typed(CallId id, CommEntry* known, Peers to, Peers from, Manner manner, const void* send_buffer, Given<Count, Displacement> out,
                   void* receive_buffer, Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  using Work = Exchange<TypedBlocks<Outgoing, Count, Displacement>, TypedBlocks<Incoming, Count, Displacement>>;
  Work* exchange = nullptr;
  bool no_memory = false;
  const bool all = persistent<Tail...> || reporting();
  if (known && out.whole() && in.whole() && (blocking<Tail...> || request_of(tail...)) &&
      (out.may_gain(CallKind::send, to, *known, manner, all) || in.may_gain(CallKind::receive, from, *known, manner, all)))
    exchange = try_exchange<Work>([&](Work& work) {
      const bool sends = work.out.prepare(send_buffer, out.counts, out.at, out.types, to, comm, manner,
                                          persistent<Tail...>);
      const bool receives = work.in.prepare(receive_buffer, in.counts, in.at, in.types, from, comm, manner,
                                            persistent<Tail...>);
      if (reporting()) [[unlikely]] {
        note_all(id, work.out);
        note_all(id, work.in);
      }
      return sends || receives || work.refused();
    }, &no_memory);
  if (!exchange) {
    if (no_memory) {
      const auto blocks_of = [](const void* base, const auto& given, std::size_t i) {
        return std::tuple(static_cast<const void*>(static_cast<const char*>(base) + given.at[i]), std::int64_t{given.counts[i]}, given.types[i]);
      };
      for (std::size_t i = 0; i < to.count; ++i)
        if (const int error = refuse_on_gpu(comm, {blocks_of(send_buffer, out, i)}); error != MPI_SUCCESS) return error;
      for (std::size_t i = 0; i < from.count; ++i)
        if (const int error = refuse_on_gpu(comm, {blocks_of(receive_buffer, in, i)}); error != MPI_SUCCESS) return error;
    }
    const int error = (next.*slot)(send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts, in.at, in.types, comm,
                                   tail...);
    if (error == MPI_SUCCESS) runtime().comms.note(comm);
    return error;
  }
  return carry_out(
      exchange,
      [&](const Work& work) {
        return (next.*slot)(send_buffer, work.out.counts(), work.out.displacements(), work.out.types(), receive_buffer,
                            work.in.counts(), work.in.displacements(), work.in.types(), comm, tail...);
      },
      tail...);
}

/// Every block may be packed. A neighbour's call may go untouched as a whole (an unknown topology, no memory): nothing is promised.
template <auto slot, class Count, class Displacement, class... Tail>
int neighbor_alltoallw(CallId id, const void* send_buffer, Given<Count, Displacement> out, void* receive_buffer,
                       Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  if (gpu_in_play() && comm != MPI_COMM_NULL) [[unlikely]] runtime().comms.note(comm);
  CommEntry* known = runtime().comms.find(comm);
  const Neighbours* neighbours = known ? &known->neighbours() : nullptr;
  if (neighbours && !neighbours->known) known = nullptr;
  const Peers to = known ? Peers{neighbours->destinations.size(), neighbours->destinations.data()} : Peers{};
  const Peers from = known ? Peers{neighbours->sources.size(), neighbours->sources.data()} : Peers{};
  return exchange_typed<slot>(id, known, to, from, {.trusting = false}, send_buffer, out, receive_buffer, in, comm, tail...);
}

template <auto slot, class Count, class Displacement, class... Tail>
int alltoallw(CallId id, const void* send_buffer, Given<Count, Displacement> out, void* receive_buffer,
              Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (gpu_in_play()) [[unlikely]] {
    const auto call = [&](const void* staged_send, void* staged_receive) {
      return (next.*slot)(staged_send, out.counts, out.at, out.types, staged_receive, in.counts, in.at, in.types, comm, tail...);
    };
    if (const std::optional<int> done = stage_typed(name(id), send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts, in.at, in.types,
                                                    comm, call, tail...))
      return *done;
  }
  // In place there is one set of blocks for both directions. Equal arrays and buffers are an error that the library finds by
  // comparing just these pointers.
  const bool sound = send_buffer != MPI_IN_PLACE && !(send_buffer == receive_buffer && out.counts == in.counts && out.types == in.types);
  CommEntry* known = sound ? runtime().comms.find(comm) : nullptr;
  if (known && known->size() < 2) known = nullptr;
  const Peers all{known ? static_cast<std::size_t>(known->size()) : 0};
  return exchange_typed<slot>(id, known, all, all, respelled_only, send_buffer, out, receive_buffer, in, comm, tail...);
}

}  // namespace
}  // namespace bestride

#define BESTRIDE_W_ENTRY(name, body, Count, Displacement, rest, rest_names) \
  BESTRIDE_ENTRY(name, body, \
                 (const void* send_buffer, const Count* send_counts, const Displacement* send_at, const MPI_Datatype* send_types, \
                  void* receive_buffer, const Count* receive_counts, const Displacement* receive_at, \
                  const MPI_Datatype* receive_types, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (send_buffer, Given<Count, Displacement>{send_counts, send_at, send_types}, receive_buffer, \
                  Given<Count, Displacement>{receive_counts, receive_at, receive_types}, comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_ALLTOALLW_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_W_ENTRY(name, alltoallw, Count, Displacement, rest, rest_names)
#define BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY(name, Count, Displacement, rest, rest_names) \
  BESTRIDE_W_ENTRY(name, neighbor_alltoallw, Count, MPI_Aint, rest, rest_names)

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALLW_ENTRY, Alltoallw, Ialltoallw)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY, Neighbor_alltoallw, Ineighbor_alltoallw)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY, Neighbor_alltoallw)
