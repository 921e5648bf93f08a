// SPDX-License-Identifier: Apache-2.0
// Reductions: staged if a buffer is device memory. The operation gets the user's own type, at the same relative
// addresses.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "interpose/calls/on_demand_entry.hpp"
#include "interpose/collectives/dispatch.hpp"
#include "interpose/collectives/left_reason.hpp"
#include "interpose/message/buffer_regions.hpp"
#include "interpose/message/shadowed_call.hpp"

namespace bestride::inline interpose {
namespace {

/// The region that is reduced: empty if the operands are in the receive buffer.
BufferRegion operand(const void* send, std::int64_t count, MPI_Datatype type) noexcept {
  return send == MPI_IN_PLACE ? BufferRegion{send} : region_of(send, count, type, BufferUse::read);
}
BufferUse result_use(const void* send) noexcept { return send == MPI_IN_PLACE ? BufferUse::both : BufferUse::written; }

/// With MPI_IN_PLACE `operands` elements are read from `receive`. Its first `results` elements are written.
BufferRegion shortened(const void* send, const void* receive, std::int64_t operands, std::int64_t results,
                       MPI_Datatype type) noexcept {
  BufferRegion region = region_of(receive, results, type, BufferUse::written);
  if (send == MPI_IN_PLACE) {
    const BufferRegion read = region_of(receive, operands, type, BufferUse::read);
    region.reads = read.reads;
    region.unknown |= read.unknown;
  }
  return region;
}

/// The elements that a rank gives to a reduction, as far as they are known.
template <class Counts>
std::int64_t all_elements(Collective what, const Counts& counts, MPI_Comm comm) noexcept {
  const CommEntry* const entry = what == Collective::reduce_scatter ? runtime().comms.find(comm) : nullptr;
  const int ranks = entry ? std::max(1, entry->size()) : 1;
  if constexpr (std::is_pointer_v<Counts>)
    return counts ? std::accumulate(counts, counts + ranks, std::int64_t{0}) : 0;
  else
    return std::int64_t{counts} * ranks;
}

/// The call as it is. Of persistent calls, the initialization is not recorded.
template <class... Tail, class Counts, class Call>
int left(const char* call_name, Collective what, const Counts& counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         const Call& call) {
  if constexpr (persistent<Tail...>) return call();
  return call_and_record(call_name, call, [&]() -> LeftCall {
    const std::int64_t bytes = bytes_of(all_elements(what, counts, comm), type);
    return {bytes, left_reason({comm, what, bytes, blocking<Tail...>}, op, type)};
  });
}

template <class... Tail, class Call>
int left_scan(const char* call_name, std::int64_t count, MPI_Datatype type, const Call& call) {
  if constexpr (persistent<Tail...>) return call();
  return call_and_record(call_name, call, [&] { return LeftCall{bytes_of(count, type), "unsupported"}; });
}

/// A reduction that is not left to the library at once; so in the names below.
template <Calls& via, auto slot, class Count, class... Tail>
[[gnu::noinline]] int full_reduce(FirstStep first, bool on_gpu, const void* send, void* receive, Count count,
                                  MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return inside(via.*slot, staged_send, staged_receive, count, type, op, root, comm, tail...);
  };
  if (first == FirstStep::dispatch)
    if (const std::optional<int> done =
            dispatch_reduce(call_name<slot>, send, receive, count, type, op, root, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>)
    leave_to_library<via>(comm, Collective::reduce, [&](const CommEntry& entry) {
      return refuses_reduction(entry, {send, receive, count, count, type, op}, root);
    });
  if (on_gpu)
    if (const CollectiveMembers members = members_of(comm); members.known) {
      const BufferRegion from = members.has_part(root) ? operand(send, count, type) : BufferRegion{send};
      const BufferRegion to =
          members.is_root(root) ? region_of(receive, count, type, result_use(send)) : BufferRegion{receive};
      if (const std::optional<int> done = call_with_shadows(call_name<slot>, from, to, comm, call, tail...))
        return *done;
    }
  return left<Tail...>(call_name<slot>, Collective::reduce, count, type, op, comm, [&] { return call(send, receive); });
}

template <Calls& via, auto slot, class Count, class... Tail>
int reduce(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
           Tail... tail) {
  const bool on_gpu = before_on_demand_call();
  CommEntry* const entry = runtime().comms.find(comm);
  const FirstStep first = first_step<via, Tail...>(
      comm, entry, Collective::reduce, bytes_moved(entry, false, type, count), [on_gpu] { return on_gpu; },
      [&](const CommEntry& on) {
        return refuses_reduction(on, {send, receive, count, count, type, op}, root);
      });
  if (first == FirstStep::call_library) return inside(via.*slot, send, receive, count, type, op, root, comm, tail...);
  return full_reduce<via, slot>(first, on_gpu, send, receive, count, type, op, root, comm, tail...);
}

/// Allreduce and scans. Scans are always done by the MPI library.
template <Calls& via, auto slot, bool scans, class Count, class... Tail>
[[gnu::noinline]] int full_over_all(FirstStep first, bool on_gpu, const void* send, void* receive, Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return inside(via.*slot, staged_send, staged_receive, count, type, op, comm, tail...);
  };
  if (!scans && first == FirstStep::dispatch)
    if (const std::optional<int> done =
            dispatch_allreduce(call_name<slot>, send, receive, count, type, op, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>) {
    if constexpr (scans)
      before_library_collective(comm);
    else
      leave_to_library<via>(comm, Collective::allreduce, [&](const CommEntry&) {
        return refuses_reduction({send, receive, count, count, type, op});
      });
  }
  if (on_gpu && comm != MPI_COMM_NULL)
    if (const std::optional<int> done =
            call_with_shadows(call_name<slot>, operand(send, count, type),
                              region_of(receive, count, type, result_use(send)), comm, call, tail...))
      return *done;
  const auto unchanged = [&] { return call(send, receive); };
  return scans ? left_scan<Tail...>(call_name<slot>, count, type, unchanged)
               : left<Tail...>(call_name<slot>, Collective::allreduce, count, type, op, comm, unchanged);
}

template <Calls& via, auto slot, class Count, class... Tail>
int allreduce(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  const bool on_gpu = before_on_demand_call();
  CommEntry* const entry = runtime().comms.find(comm);
  const FirstStep first = first_step<via, Tail...>(
      comm, entry, Collective::allreduce, bytes_moved(entry, false, type, count), [on_gpu] { return on_gpu; },
      [&](const CommEntry&) {
        return refuses_reduction({send, receive, count, count, type, op});
      });
  if (first == FirstStep::call_library) return inside(via.*slot, send, receive, count, type, op, comm, tail...);
  return full_over_all<via, slot, false>(first, on_gpu, send, receive, count, type, op, comm, tail...);
}

template <Calls& via, auto slot, class Count, class... Tail>
int scan(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  const bool on_gpu = before_on_demand_call();
  return full_over_all<via, slot, true>(FirstStep::leave, on_gpu, send, receive, count, type, op, comm, tail...);
}

/// The first rank gets no result: what the library may write to its buffer stays in the shadow.
template <Calls& via, auto slot, class Count, class... Tail>
int exscan(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return inside(via.*slot, staged_send, staged_receive, count, type, op, comm, tail...);
  };
  const bool on_gpu = before_on_demand_call();
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu)
    if (const CollectiveMembers members = members_of(comm); members.known) {
      const BufferRegion to = region_of(receive, count, type, members.rank == 0 ? BufferUse::read : result_use(send));
      if (const std::optional<int> done =
              call_with_shadows(call_name<slot>, operand(send, count, type), to, comm, call, tail...))
        return *done;
    }
  return left_scan<Tail...>(call_name<slot>, count, type, [&] { return call(send, receive); });
}

template <Calls& via, auto slot, class Count, class... Tail>
int reduce_scatter(const void* send, void* receive, const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return inside(via.*slot, staged_send, staged_receive, counts, type, op, comm, tail...);
  };
  const bool on_gpu = before_on_demand_call();
  [[maybe_unused]] const auto refused = [&](const CommEntry& entry) {
    return counts && refuses_reduction(scattered_reduction(entry, send, receive, counts, type, op));
  };
  if (!is_refused<via, Tail...>(comm, runtime().comms.find(comm), refused) && may_dispatch<via>() && counts)
      [[unlikely]]
    if (const std::optional<int> done = dispatch_reduce_scatter(
            call_name<slot>, send, receive, [counts](int rank) { return std::int64_t{counts[rank]}; }, type, op, comm,
            tail...))
      return *done;
  if constexpr (blocking<Tail...>) leave_to_library<via>(comm, Collective::reduce_scatter, refused);
  if (on_gpu && counts)
    if (const CollectiveMembers members = members_of(comm); members.known) {
      std::int64_t all = 0;
      bool sound = true;
      for (int i = 0; i < members.size; ++i)
        sound = sound && counts[i] >= 0 && !__builtin_add_overflow(all, std::int64_t{counts[i]}, &all);
      if (sound)
        if (const std::optional<int> done =
                call_with_shadows(call_name<slot>, operand(send, all, type),
                                  shortened(send, receive, all, counts[members.rank], type), comm, call, tail...))
          return *done;
    }
  return left<Tail...>(call_name<slot>, Collective::reduce_scatter, counts, type, op, comm,
                       [&] { return call(send, receive); });
}

template <Calls& via, auto slot, class Count, class... Tail>
[[gnu::noinline]] int full_reduce_scatter_block(FirstStep first, bool on_gpu, const void* send, void* receive,
                                                Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return inside(via.*slot, staged_send, staged_receive, count, type, op, comm, tail...);
  };
  if (first == FirstStep::dispatch)
    if (const std::optional<int> done = dispatch_reduce_scatter(
            call_name<slot>, send, receive, [count](int) { return std::int64_t{count}; }, type, op, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>)
    leave_to_library<via>(comm, Collective::reduce_scatter, [&](const CommEntry&) {
      return refuses_reduction({send, receive, count, count, type, op});
    });
  if (on_gpu)
    if (const CollectiveMembers members = members_of(comm); members.known) {
      std::int64_t all = 0;
      if (!__builtin_mul_overflow(std::int64_t{count}, members.size, &all))
        if (const std::optional<int> done =
                call_with_shadows(call_name<slot>, operand(send, all, type), shortened(send, receive, all, count, type),
                                  comm, call, tail...))
          return *done;
    }
  return left<Tail...>(call_name<slot>, Collective::reduce_scatter, count, type, op, comm,
                       [&] { return call(send, receive); });
}

template <Calls& via, auto slot, class Count, class... Tail>
int reduce_scatter_block(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                         Tail... tail) {
  const bool on_gpu = before_on_demand_call();
  CommEntry* const entry = runtime().comms.find(comm);
  const FirstStep first = first_step<via, Tail...>(
      comm, entry, Collective::reduce_scatter, bytes_moved(entry, true, type, count), [on_gpu] { return on_gpu; },
      [&](const CommEntry&) {
        return refuses_reduction({send, receive, count, count, type, op});
      });
  if (first == FirstStep::call_library) return inside(via.*slot, send, receive, count, type, op, comm, tail...);
  return full_reduce_scatter_block<via, slot>(first, on_gpu, send, receive, count, type, op, comm, tail...);
}

template <Calls& via, auto slot, class Count>
int reduce_local(const void* operands, void* results, Count count, MPI_Datatype type, MPI_Op op) {
  const auto call = [&](const void* staged_operands, void* staged_results) {
    return (via.*slot)(staged_operands, staged_results, count, type, op);
  };
  // Errors of calls without a communicator are raised on MPI_COMM_SELF (MPI-4, 9.3).
  if (before_on_demand_call())
    if (const std::optional<int> done =
            call_with_shadows(call_name<slot>, region_of(operands, count, type, BufferUse::read),
                              region_of(results, count, type, BufferUse::both), MPI_COMM_SELF, call))
      return *done;
  return call(operands, results);
}

}  // namespace

BESTRIDE_ON_DEMAND_FORMS(Reduce, Ireduce, reduce)
BESTRIDE_ON_DEMAND_FORMS(Allreduce, Iallreduce, allreduce)
BESTRIDE_ON_DEMAND_FORMS(Reduce_scatter, Ireduce_scatter, reduce_scatter)
BESTRIDE_ON_DEMAND_FORMS(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block)
BESTRIDE_ON_DEMAND_FORMS(Scan, Iscan, scan)
BESTRIDE_ON_DEMAND_FORMS(Exscan, Iexscan, exscan)
BESTRIDE_ON_DEMAND_SIZES(Reduce_local, reduce_local)

}  // namespace bestride::inline interpose
