// SPDX-License-Identifier: Apache-2.0
// Reductions: staged where device memory is given. The operation sees the user's own type, at the same relative places.
#include "interpose/back/gpu/late_entry.hpp"
#include "interpose/back/gpu/regions.hpp"
#include "interpose/back/gpu/staged.hpp"
#include "interpose/back/hierarchical/spread.hpp"

namespace bestride {
namespace {

/// What is reduced: nothing where the operands are in the receive buffer.
Region operand(const void* send, std::int64_t count, MPI_Datatype type) noexcept {
  return send == MPI_IN_PLACE ? Region{send} : region_of(send, count, type, Use::read);
}
Use result_use(const void* send) noexcept { return send == MPI_IN_PLACE ? Use::both : Use::written; }

/// `operands` elements are read from `receive`, in place, and the first `results` of them written.
Region shortened(const void* send, const void* receive, std::int64_t operands, std::int64_t results, MPI_Datatype type) noexcept {
  Region region = region_of(receive, results, type, Use::written);
  if (send == MPI_IN_PLACE) {
    const Region read = region_of(receive, operands, type, Use::read);
    region.reads = read.reads;
    region.unknown |= read.unknown;
  }
  return region;
}

template <auto slot, class Count, class... Tail>
int reduce(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return by_library<slot>(form, staged_send, staged_receive, count, type, op, root, comm, tail...);
  };
  const bool on_gpu = begin_late();
  if (may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_reduce(call_name<slot>, &form, send, receive, count, type, op, root, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu)
    if (const Members members = members_of(comm); members.known) {
      const Region from = members.has_part(root) ? operand(send, count, type) : Region{send};
      const Region to = members.is_root(root) ? region_of(receive, count, type, result_use(send)) : Region{receive};
      if (const std::optional<int> done = stage(call_name<slot>, from, to, comm, call, tail...)) return *done;
    }
  return call(send, receive);
}

/// Of an allreduce, and of a scan, which only the MPI library does.
template <auto slot, bool scans, class Count, class... Tail>
int over_all(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return by_library<slot>(form, staged_send, staged_receive, count, type, op, comm, tail...);
  };
  const bool on_gpu = begin_late();
  if (!scans && may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_allreduce(call_name<slot>, &form, send, receive, count, type, op, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu && comm != MPI_COMM_NULL)
    if (const std::optional<int> done =
            stage(call_name<slot>, operand(send, count, type), region_of(receive, count, type, result_use(send)), comm, call, tail...))
      return *done;
  return call(send, receive);
}

template <auto slot, class Count, class... Tail>
int allreduce(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  return over_all<slot, false>(send, receive, count, type, op, comm, tail...);
}

template <auto slot, class Count, class... Tail>
int scan(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  return over_all<slot, true>(send, receive, count, type, op, comm, tail...);
}

/// The first rank gets nothing: what the library may leave in its buffer stays in the mirror.
template <auto slot, class Count, class... Tail>
int exscan(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return (next.*slot)(staged_send, staged_receive, count, type, op, comm, tail...);
  };
  const bool on_gpu = begin_late();
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu)
    if (const Members members = members_of(comm); members.known) {
      const Region to = region_of(receive, count, type, members.rank == 0 ? Use::read : result_use(send));
      if (const std::optional<int> done = stage(call_name<slot>, operand(send, count, type), to, comm, call, tail...)) return *done;
    }
  return call(send, receive);
}

template <auto slot, class Count, class... Tail>
int reduce_scatter(const void* send, void* receive, const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return by_library<slot>(form, staged_send, staged_receive, counts, type, op, comm, tail...);
  };
  const bool on_gpu = begin_late();
  if (may_spread() && counts) [[unlikely]]
    if (const std::optional<int> done = spread_reduce_scatter(call_name<slot>, &form, send, receive, [counts](int rank) { return std::int64_t{counts[rank]}; }, type, op, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu && counts)
    if (const Members members = members_of(comm); members.known) {
      std::int64_t all = 0;
      bool sound = true;
      for (int i = 0; i < members.size; ++i) sound = sound && counts[i] >= 0 && !__builtin_add_overflow(all, std::int64_t{counts[i]}, &all);
      if (sound)
        if (const std::optional<int> done = stage(call_name<slot>, operand(send, all, type), shortened(send, receive, all, counts[members.rank], type), comm,
                                                  call, tail...))
          return *done;
    }
  return call(send, receive);
}

template <auto slot, class Count, class... Tail>
int reduce_scatter_block(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  LibraryForm form = LibraryForm::as_called;
  const auto call = [&](const void* staged_send, void* staged_receive) {
    return by_library<slot>(form, staged_send, staged_receive, count, type, op, comm, tail...);
  };
  const bool on_gpu = begin_late();
  if (may_spread()) [[unlikely]]
    if (const std::optional<int> done = spread_reduce_scatter(call_name<slot>, &form, send, receive, [count](int) { return std::int64_t{count}; }, type, op, comm, tail...))
      return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  if (on_gpu)
    if (const Members members = members_of(comm); members.known) {
      std::int64_t all = 0;
      if (!__builtin_mul_overflow(std::int64_t{count}, members.size, &all))
        if (const std::optional<int> done = stage(call_name<slot>, operand(send, all, type), shortened(send, receive, all, count, type), comm, call, tail...))
          return *done;
    }
  return call(send, receive);
}

template <auto slot, class Count>
int reduce_local(const void* operands, void* results, Count count, MPI_Datatype type, MPI_Op op) {
  const auto call = [&](const void* staged_operands, void* staged_results) {
    return (next.*slot)(staged_operands, staged_results, count, type, op);
  };
  // Errors of calls without a communicator are raised on MPI_COMM_SELF (MPI-4, 9.3).
  if (begin_late())
    if (const std::optional<int> done =
            stage(call_name<slot>, region_of(operands, count, type, Use::read), region_of(results, count, type, Use::both), MPI_COMM_SELF, call))
      return *done;
  return call(operands, results);
}

}  // namespace

std::span<const LateEntry> late_reduced() noexcept {
  static const LateEntry all[] = {
#define BESTRIDE_LATE_REDUCED(name, body) BESTRIDE_LATE_ENTRY(name, body)
#include "interpose/back/gpu/late.def"
  };
  return all;
}

}  // namespace bestride
