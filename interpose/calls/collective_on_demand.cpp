// SPDX-License-Identifier: Apache-2.0
// Broadcasts in all forms, and the persistent forms of the other collectives that move data: staged if a buffer is
// device memory. The blocking and nonblocking forms of the others are in collective.cpp and alltoallw.cpp.
#include <tuple>

#include "interpose/calls/collective_entry.hpp"
#include "interpose/calls/on_demand_entry.hpp"
#include "interpose/collectives/dispatch_moved.hpp"
#include "interpose/collectives/left_reason.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "interpose/message/shadowed_collective.hpp"

namespace bestride::inline interpose {
namespace {

/// A broadcast that is not left to the library at once.
template <Calls& via, auto slot, class Count, class... Tail>
[[gnu::noinline]] int full_bcast(FirstStep first, bool on_gpu, void* buffer, Count count, MPI_Datatype type, int root,
                                 MPI_Comm comm, Tail... tail) {
  if (first == FirstStep::dispatch)
    if (const std::optional<int> done = dispatch_bcast(call_name<slot>, buffer, count, type, root, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>)
    leave_to_library<via>(comm, Collective::broadcast,
                          [&](const CommEntry& entry) { return refuses_bcast(entry, buffer, count, type, root); });
  if (on_gpu)
    if (const CollectiveMembers members = members_of(comm); members.known) {
      BufferRegion region{buffer};
      if (members.is_root(root))
        region = region_of(buffer, count, type, BufferUse::read);
      else if (members.has_part(root))
        region = region_of(buffer, count, type, BufferUse::written);
      const auto call = [&](const void*, void* staged) {
        return inside(via.*slot, staged, count, type, root, comm, tail...);
      };
      if (const std::optional<int> done = call_with_shadows(call_name<slot>, {}, region, comm, call, tail...))
        return *done;
    }
  const auto call = [&] { return inside(via.*slot, buffer, count, type, root, comm, tail...); };
  if constexpr (persistent<Tail...>) return call();
  return call_and_record(call_name<slot>, call, [&]() -> LeftCall {
    const std::int64_t bytes = bytes_of(std::int64_t{count}, type);
    return {bytes, left_reason({comm, Collective::broadcast, bytes, blocking<Tail...>})};
  });
}

template <Calls& via, auto slot, class Count, class... Tail>
int bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, Tail... tail) {
  const bool on_gpu = before_on_demand_call();
  CommEntry* const entry = runtime().comms.find(comm);
  const FirstStep first = first_step<via, Tail...>(
      comm, entry, Collective::broadcast, bytes_moved(entry, false, type, count), [on_gpu] { return on_gpu; },
      [&](const CommEntry& on) { return refuses_bcast(on, buffer, count, type, root); });
  if (first == FirstStep::call_library) return inside(via.*slot, buffer, count, type, root, comm, tail...);
  return full_bcast<via, slot>(first, on_gpu, buffer, count, type, root, comm, tail...);
}

template <Calls& via, auto slot, AtRoot only, class Out, class In, class... Tail>
int moved(const Out& out, const In& in, int root, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const auto& out_arguments, const auto& in_arguments) {
    const InLibraryCall inside;
    if constexpr (only == AtRoot::neither)
      return std::apply(via.*slot, std::tuple_cat(out_arguments, in_arguments, std::tuple(comm, tail...)));
    else
      return std::apply(via.*slot, std::tuple_cat(out_arguments, in_arguments, std::tuple(root, comm, tail...)));
  };
  const bool on_gpu = before_on_demand_call();
  if (!is_refused<via, Tail...>(comm, runtime().comms.find(comm),
                                [&](const CommEntry& entry) { return refuses_moved<only>(entry, out, in, root); }) &&
      may_dispatch<via>()) [[unlikely]]
    if (const std::optional<int> done = dispatch_moved<only>(call_name<slot>, out, in, root, comm, tail...))
      return *done;
  if (on_gpu)
    if (const std::optional<int> done =
            call_with_shadowed_blocks<only>(call_name<slot>, out, in, root, comm, call, tail...))
      return *done;
  return call(out.arguments(), in.arguments());
}

// One body for each collective; in those without an array of displacements, At is not used.
#define BESTRIDE_MOVED(name, only, send, sent, receive, received, root_parameter, root)                 \
  template <Calls& via, auto slot, class Count, class At = int, class... Tail>                          \
  int name(BESTRIDE_UNWRAP send, BESTRIDE_UNWRAP receive BESTRIDE_UNWRAP root_parameter, MPI_Comm comm, \
           Tail... tail) {                                                                              \
    return moved<via, slot, only>(BESTRIDE_UNWRAP sent, BESTRIDE_UNWRAP received, root, comm, tail...); \
  }
#define BESTRIDE_FROM_OR_TO_ROOT(name, only, ...) BESTRIDE_MOVED(name, only, __VA_ARGS__, (, int root), root)
#define BESTRIDE_AMONG_MEMBERS(name, ...) BESTRIDE_MOVED(name, AtRoot::neither, __VA_ARGS__, (), MPI_PROC_NULL)
BESTRIDE_FROM_OR_TO_ROOT(gather, AtRoot::in, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),
                         (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(EqualBlocks, Count)))
BESTRIDE_FROM_OR_TO_ROOT(gatherv, AtRoot::in, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),
                         (BESTRIDE_RECEIVE_V(Count, At)), (BESTRIDE_RECEIVED_V(Count, At)))
BESTRIDE_FROM_OR_TO_ROOT(scatter, AtRoot::out, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)),
                         (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(OneBlock, Count)))
BESTRIDE_FROM_OR_TO_ROOT(scatterv, AtRoot::out, (BESTRIDE_SEND_V(Count, At)), (BESTRIDE_SENT_V(Count, At)),
                         (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(OneBlock, Count)))
BESTRIDE_AMONG_MEMBERS(allgather, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), (BESTRIDE_RECEIVE(Count)),
                       (BESTRIDE_RECEIVED(EqualBlocks, Count)))
BESTRIDE_AMONG_MEMBERS(allgatherv, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),
                       (BESTRIDE_RECEIVE_V(Count, At)), (BESTRIDE_RECEIVED_V(Count, At)))
BESTRIDE_AMONG_MEMBERS(alltoall, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), (BESTRIDE_RECEIVE(Count)),
                       (BESTRIDE_RECEIVED(EqualBlocks, Count)))
BESTRIDE_AMONG_MEMBERS(alltoallv, (BESTRIDE_SEND_V(Count, At)), (BESTRIDE_SENT_V(Count, At)),
                       (BESTRIDE_RECEIVE_V(Count, At)), (BESTRIDE_RECEIVED_V(Count, At)))

template <Calls& via, auto slot, class Count, class At, class... Tail>
int alltoallw(const void* send, const Count* send_counts, const At* send_at, const MPI_Datatype* send_types,
              void* receive, const Count* receive_counts, const At* receive_at, const MPI_Datatype* receive_types,
              MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    const InLibraryCall inside;
    return (via.*slot)(staged_send, send_counts, send_at, send_types, staged_receive, receive_counts, receive_at,
                       receive_types, comm, tail...);
  };
  const bool on_gpu = before_on_demand_call();
  const TypedGiven<const void*, Count, At> out{send, send_counts, send_at, send_types};
  const TypedGiven<void*, Count, At> in{receive, receive_counts, receive_at, receive_types};
  if (!is_refused<via, Tail...>(comm, runtime().comms.find(comm),
                                [&](const CommEntry& entry) { return refuses_alltoallw(entry, out, in); }) &&
      may_dispatch<via>()) [[unlikely]]
    if (const std::optional<int> done = dispatch_alltoallw(call_name<slot>, out, in, comm, tail...)) return *done;
  if (on_gpu)
    if (const std::optional<int> done =
            call_with_shadowed_types(call_name<slot>, send, send_counts, send_at, send_types, receive, receive_counts,
                                     receive_at, receive_types, comm, call, tail...))
      return *done;
  return call(send, receive);
}

}  // namespace

BESTRIDE_ON_DEMAND_FORMS(Bcast, Ibcast, bcast)
BESTRIDE_ON_DEMAND_SIZES(Gather_init, gather)
BESTRIDE_ON_DEMAND_SIZES(Gatherv_init, gatherv)
BESTRIDE_ON_DEMAND_SIZES(Scatter_init, scatter)
BESTRIDE_ON_DEMAND_SIZES(Scatterv_init, scatterv)
BESTRIDE_ON_DEMAND_SIZES(Allgather_init, allgather)
BESTRIDE_ON_DEMAND_SIZES(Allgatherv_init, allgatherv)
BESTRIDE_ON_DEMAND_SIZES(Alltoall_init, alltoall)
BESTRIDE_ON_DEMAND_SIZES(Alltoallv_init, alltoallv)
BESTRIDE_ON_DEMAND_SIZES(Alltoallw_init, alltoallw)

}  // namespace bestride::inline interpose
