// SPDX-License-Identifier: Apache-2.0
// MPI_Alltoallw and MPI_Neighbor_alltoallw: one exchange, between all ranks or between neighbors. MPI_Alltoallw_init
// is not here for the reason in collective.cpp.
#include <new>
#include <type_traits>
#include <vector>

#include "interpose/calls/entry.hpp"
#include "interpose/collectives/dispatch_neighbor.hpp"
#include "interpose/collectives/left_reason.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/message/shadowed_collective.hpp"
#include "interpose/message/typed_blocks.hpp"

namespace bestride::inline interpose {
namespace {

template <class Blocks>
void record_all(CallId id, const Blocks& blocks) noexcept {
  for (const auto& endpoint : blocks.endpoints())
    if (endpoint.plan()) record(id, endpoint, 0);
}

/// The user's arguments of one direction.
template <class Count, class Displacement>
struct Given {
  const Count* counts;
  const Displacement* at;
  const MPI_Datatype* types;

  bool whole() const noexcept { return counts && at && types; }
  std::int64_t bytes(const Peers& peers) const noexcept {
    std::int64_t all = 0;
    for (std::size_t i = 0; whole() && i < peers.count; ++i)
      if (peers[i] != MPI_PROC_NULL) all += bytes_of(std::int64_t{counts[i]}, types[i]);
    return all;
  }
  /// True if MPI may be given other arguments for some block. `all`: any type for which find_candidate() returns an
  /// entry is enough.
  bool may_gain(CallKind kind, const Peers& peers, CommEntry& comm, CallTraits traits, bool all) const noexcept {
    for (std::size_t i = 0; i < peers.count; ++i)
      if (TypeEntry* entry = find_candidate(types[i], counts[i]))
        if (all || gpu_runtime_detected() || bestride::may_gain(*entry, counts[i], kind, peers[i], comm, traits))
          return true;
    return false;
  }
  /// As bestride::refuse_device_memory(), for all blocks.
  int refuse_device_memory(const void* base, const Peers& peers, MPI_Comm comm) const {
    for (std::size_t i = 0; i < peers.count; ++i)
      if (const int error =
              bestride::refuse_device_memory(comm, {{static_cast<const char*>(base) + at[i], counts[i], types[i]}});
          error != MPI_SUCCESS)
        return error;
    return MPI_SUCCESS;
  }
};

/// &Calls::Neighbor_alltoallw_c for &Calls::Neighbor_alltoallw, and so on; nullptr for other functions.
template <auto slot>
inline constexpr auto large_neighbor_form = nullptr;
#if MPI_VERSION >= 4
#define BESTRIDE_LARGE_NEIGHBOR_FORM(Name) \
  template <>                              \
  inline constexpr auto large_neighbor_form<&Calls::Name> = &Calls::Name##_c;
BESTRIDE_LARGE_NEIGHBOR_FORM(Neighbor_alltoallw)
BESTRIDE_LARGE_NEIGHBOR_FORM(Ineighbor_alltoallw)
BESTRIDE_LARGE_NEIGHBOR_FORM(Neighbor_alltoallw_init)
#undef BESTRIDE_LARGE_NEIGHBOR_FORM
#endif

/// The MPI library's function, or its form with MPI_Count (quirks::neighbor_alltoallw_exchanges_degrees).
template <Calls& via, auto slot, class Count, class Displacement, class... Tail>
int typed_by_library(Peers to, Peers from, const void* send_buffer, Given<Count, Displacement> out,
                     void* receive_buffer, Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  if constexpr (!std::is_null_pointer_v<decltype(large_neighbor_form<slot>)>)
    if (to.count != from.count && (to.count == 0 || out.counts) && (from.count == 0 || in.counts) &&
        runtime().library() == OneNodeLibrary::mpich_4_0) [[unlikely]]
      try {
        const std::vector<MPI_Count> sent(out.counts, out.counts + to.count);
        const std::vector<MPI_Count> received(in.counts, in.counts + from.count);
        return inside(via.*large_neighbor_form<slot>, send_buffer, sent.data(), out.at, out.types, receive_buffer,
                      received.data(), in.at, in.types, comm, tail...);
      } catch (const std::bad_alloc&) {
      }
  return inside(via.*slot, send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts, in.at, in.types, comm,
                tail...);
}

/// If `known` is nullptr, the call is forwarded. why(): the reason, for the report.
template <Calls& via, auto slot, class Count, class Displacement, class Why, class... Tail>
int exchange_typed(CallId id, CommEntry* known, Peers to, Peers from, CallTraits traits, const void* send_buffer,
                   Given<Count, Displacement> out, void* receive_buffer, Given<Count, Displacement> in, MPI_Comm comm,
                   const Why& why, Tail... tail) {
  using Work = CollectiveCompletion<TypedBlocks<SendEndpoint, Count, Displacement>,
                                    TypedBlocks<ReceiveEndpoint, Count, Displacement>>;
  const bool all = persistent<Tail...> || reporting();
  const bool may_gain = known && out.whole() && in.whole() &&
                        (out.may_gain(CallKind::send, to, *known, traits, all) ||
                         in.may_gain(CallKind::receive, from, *known, traits, all));
  return exchange_or_forward<Work>(
      may_gain, comm,
      [&](Work& work) {
        const bool sends =
            work.out.prepare(send_buffer, out.counts, out.at, out.types, to, comm, traits, persistent<Tail...>);
        const bool receives =
            work.in.prepare(receive_buffer, in.counts, in.at, in.types, from, comm, traits, persistent<Tail...>);
        if (reporting()) [[unlikely]] {
          record_all(id, work.out);
          record_all(id, work.in);
        }
        return sends || receives || work.failed();
      },
      [&](const Work& work) {
        return typed_by_library<via, slot>(
            to, from, send_buffer,
            Given<Count, Displacement>{work.out.counts(), work.out.displacements(), work.out.types()}, receive_buffer,
            Given<Count, Displacement>{work.in.counts(), work.in.displacements(), work.in.types()}, comm, tail...);
      },
      [&] {
        const auto unchanged = [&] {
          return typed_by_library<via, slot>(to, from, send_buffer, out, receive_buffer, in, comm, tail...);
        };
        if (persistent<Tail...> || may_gain) return unchanged();
        return call_and_record(name(id), unchanged, [&] {
          return LeftCall{send_buffer == MPI_IN_PLACE ? in.bytes(from) : out.bytes(to), why()};
        });
      },
      [&] {
        const int error = out.refuse_device_memory(send_buffer, to, comm);
        return error != MPI_SUCCESS ? error : in.refuse_device_memory(receive_buffer, from, comm);
      },
      tail...);
}

/// Every block may be packed.
template <Calls& via, auto slot, class Count, class Displacement, class... Tail>
int neighbor_alltoallw(CallId id, const void* send_buffer, Given<Count, Displacement> out, void* receive_buffer,
                       Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  if (leaves_neighbor_call<Tail...>(comm)) {
    if constexpr (blocking<Tail...>) before_library_collective(comm);
    return inside(via.*slot, send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts, in.at, in.types,
                  comm, tail...);
  }
  if (may_dispatch<via>()) [[unlikely]]
    if (const std::optional<int> done = dispatch_neighbor(
            name(id), NeighborForm::alltoallw,
            TypedGiven<const void*, Count, Displacement>{send_buffer, out.counts, out.at, out.types},
            TypedGiven<void*, Count, Displacement>{receive_buffer, in.counts, in.at, in.types}, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (gpu_runtime_detected() && comm != MPI_COMM_NULL) [[unlikely]]
    runtime().comms.add_valid(comm);
  const bool packs = gpu_runtime_detected() || runtime().options().forced || packed_neighbor_blocks_gain();
  CommEntry* known = runtime().comms.find(comm);
  const Neighbors* neighbors = known ? &known->neighbors() : nullptr;
  if (neighbors && !neighbors->known) known = nullptr;
  const Peers to = known ? Peers{neighbors->destinations.size(), neighbors->destinations.data()} : Peers{};
  const Peers from = known ? Peers{neighbors->sources.size(), neighbors->sources.data()} : Peers{};
  return exchange_typed<via, slot>(
      id, packs ? known : nullptr, to, from, {}, send_buffer, out, receive_buffer, in, comm,
      [comm] { return left_neighbor_reason(comm, NeighborForm::alltoallw, blocking<Tail...>); }, tail...);
}

template <Calls& via, auto slot, class Count, class Displacement, class... Tail>
int alltoallw(CallId id, const void* send_buffer, Given<Count, Displacement> out, void* receive_buffer,
              Given<Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  const TypedGiven<const void*, Count, Displacement> sent{send_buffer, out.counts, out.at, out.types};
  const TypedGiven<void*, Count, Displacement> received{receive_buffer, in.counts, in.at, in.types};
  [[maybe_unused]] const auto refused = [&](const CommEntry& on) { return refuses_alltoallw(on, sent, received); };
  if (is_refused<via, Tail...>(comm, runtime().comms.find(comm), refused))
    return inside(via.*slot, send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts, in.at, in.types,
                  comm, tail...);
  if (may_dispatch<via>()) [[unlikely]]
    if (const std::optional<int> done = dispatch_alltoallw(name(id), sent, received, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) leave_to_library<via>(comm, Collective::alltoall, refused);
  if (gpu_runtime_detected()) [[unlikely]] {
    const auto call = [&](const void* staged_send, void* staged_receive) {
      return inside(via.*slot, staged_send, out.counts, out.at, out.types, staged_receive, in.counts, in.at, in.types,
                    comm, tail...);
    };
    if (const std::optional<int> done =
            call_with_shadowed_types(name(id), send_buffer, out.counts, out.at, out.types, receive_buffer, in.counts,
                                     in.at, in.types, comm, call, tail...))
      return *done;
  }
  // With MPI_IN_PLACE one set of blocks serves both directions. Equal arrays and buffers are an error that the library
  // detects by comparing these pointers, so such a call is forwarded.
  const bool sound = send_buffer != MPI_IN_PLACE &&
                     !(send_buffer == receive_buffer && out.counts == in.counts && out.types == in.types);
  CommEntry* const entry = runtime().comms.find(comm);
  CommEntry* const known = sound && entry && entry->size() >= 2 ? entry : nullptr;
  const Peers all{entry ? static_cast<std::size_t>(entry->size()) : 0};
  return exchange_typed<via, slot>(
      id, known, all, all, respelled_only, send_buffer, out, receive_buffer, in, comm,
      [&] {
        return left_reason({comm, Collective::alltoall, std::nullopt, blocking<Tail...>, send_buffer == MPI_IN_PLACE});
      },
      tail...);
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_W_PARAMETERS(Count, Displacement, rest)                                                           \
  (const void* send_buffer, const Count* send_counts, const Displacement* send_at, const MPI_Datatype* send_types, \
   void* receive_buffer, const Count* receive_counts, const Displacement* receive_at,                              \
   const MPI_Datatype* receive_types, MPI_Comm comm BESTRIDE_UNWRAP rest)
#define BESTRIDE_W_ARGUMENTS(Count, Displacement, rest_names)                                 \
  (send_buffer, Given<Count, Displacement>{send_counts, send_at, send_types}, receive_buffer, \
   Given<Count, Displacement>{receive_counts, receive_at, receive_types}, comm BESTRIDE_UNWRAP rest_names)
#define BESTRIDE_ALLTOALLW_ENTRY(name, Count, Displacement, rest, rest_names)       \
  BESTRIDE_ENTRY(name, alltoallw, BESTRIDE_W_PARAMETERS(Count, Displacement, rest), \
                 BESTRIDE_W_ARGUMENTS(Count, Displacement, rest_names))
#define BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY(name, Count, Displacement, rest, rest_names)   \
  BESTRIDE_ENTRY(name, neighbor_alltoallw, BESTRIDE_W_PARAMETERS(Count, MPI_Aint, rest), \
                 BESTRIDE_W_ARGUMENTS(Count, MPI_Aint, rest_names))

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_ALLTOALLW_ENTRY, Alltoallw, Ialltoallw)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY, Neighbor_alltoallw, Ineighbor_alltoallw)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLW_ENTRY, Neighbor_alltoallw)
