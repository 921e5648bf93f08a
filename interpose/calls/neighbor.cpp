// SPDX-License-Identifier: Apache-2.0
// MPI_Neighbor_allgather, MPI_Neighbor_allgatherv, MPI_Neighbor_alltoall and MPI_Neighbor_alltoallv in all forms.
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "interpose/calls/collective_entry.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/dispatch_neighbor.hpp"
#include "interpose/collectives/left_reason.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/packed_blocks.hpp"
#include "interpose/message/respelled_blocks.hpp"

namespace bestride::inline interpose {
namespace {

// The two directions of such a call. For the arguments that the user gave (OneBlock, EqualBlocks, VaryingBlocks):
// - prepare(given, ranks, comm, reused): true if MPI is given other arguments. May throw std::bad_alloc.
// - arguments(given): what MPI is given.

/// The send direction of an allgather: one message to all neighbors.
template <class Count>
class MessageToAll {
 public:
  using Given = OneBlock<const void*, Count>;

  bool prepare(const Given& given, const std::vector<int>&, MPI_Comm comm, bool reused) noexcept {
    TypeEntry* entry = gpu_runtime_detected() ? type_entry_or_opaque(given.type) : find_candidate(given.type);
    if (!entry) return false;
    if (reused) entry->expect_reuse();
    return changed_ = endpoint_.prepare(given.buffer, given.count, entry, MPI_ANY_SOURCE, comm, largest_count<Count>);
  }
  auto arguments(const Given& given) const noexcept {
    return changed_ ? std::tuple(static_cast<const void*>(endpoint_.buffer()), static_cast<Count>(endpoint_.count()),
                                 endpoint_.type())
                    : given.arguments();
  }
  void record_in_report(CallId id) const noexcept { record(id, endpoint_, 0); }
  void fill() noexcept { endpoint_.fill(); }
  void release() noexcept { endpoint_.release(); }
  bool failed() const noexcept { return endpoint_.failed(); }
  int raise_error() const { return endpoint_.raise_error(); }

 private:
  SendEndpoint endpoint_;
  bool changed_ = false;
};

template <class Buffer>
constexpr CallKind blocks_kind = std::is_same_v<Buffer, const void*> ? CallKind::send : CallKind::receive;

/// One block for each neighbor, block i at i * count extents from the start of the buffer.
template <class Buffer, class Count>
class EqualNeighborBlocks : public PackedBlocks<Count, std::int64_t> {
 public:
  using Given = EqualBlocks<Buffer, Count>;

  bool prepare(const Given& given, const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    const std::int64_t count = given.count;
    return PackedBlocks<Count, std::int64_t>::prepare(
        blocks_kind<Buffer>, given.buffer, [count](std::size_t) { return count; },
        [count](std::size_t i) { return static_cast<std::int64_t>(i) * count; }, given.type, ranks, comm, reused);
  }
  auto arguments(const Given& given) const noexcept {
    return *this ? std::tuple(static_cast<Buffer>(this->buffer()), this->counts()[0], this->type()) : given.arguments();
  }
};

/// One block for each neighbor, each with a count and a displacement.
template <class Buffer, class Count, class Displacement>
class VaryingNeighborBlocks : public PackedBlocks<Count, Displacement> {
 public:
  using Given = VaryingBlocks<Buffer, Count, Displacement>;

  bool prepare(const Given& given, const std::vector<int>& ranks, MPI_Comm comm, bool reused) {
    return PackedBlocks<Count, Displacement>::prepare(
        blocks_kind<Buffer>, given.buffer, [&given](std::size_t i) { return std::int64_t{given.counts[i]}; },
        [&given](std::size_t i) { return std::int64_t{given.at[i]}; }, given.type, ranks, comm, reused);
  }
  auto arguments(const Given& given) const noexcept {
    return *this ? std::tuple(static_cast<Buffer>(this->buffer()), this->counts(), this->displacements(), this->type())
                 : given.arguments();
  }
};

template <class Given>
bool has_arguments(const Given& given) noexcept {
  if constexpr (Given::has_arrays) return given.counts && given.at;
  return true;
}

/// True for blocks that a communicator with few calls does not pack: to read the topology takes longer.
template <class Given>
bool has_short_blocks(const Given& given) noexcept {
  if constexpr (Given::has_arrays) {
    return false;
  } else {
    constexpr std::int64_t least_long = 8 * 1024;
    std::int64_t bytes = 0;
    return !__builtin_mul_overflow(std::int64_t{given.count}, runtime().types.size_of(given.type), &bytes) &&
           bytes < least_long;
  }
}

template <Calls& via, auto slot, class Out, class In, class... Tail>
int exchange(CallId id, NeighborForm form, const typename Out::Given& out, const typename In::Given& in, MPI_Comm comm,
             Tail... tail) {
  if (leaves_neighbor_call<Tail...>(comm)) {
    if constexpr (blocking<Tail...>) before_library_collective(comm);
    return std::apply([&](auto... arguments) { return inside(via.*slot, arguments..., comm, tail...); },
                      std::tuple_cat(out.arguments(), in.arguments()));
  }
  [[maybe_unused]] CommEntry* leaving = nullptr;
  if constexpr (blocking<Tail...>)
    if (may_dispatch<via>() && !gpu_runtime_detected() && !reporting() && !runtime().options().forced &&
        (leaving = leaving_neighbor_call(comm)) &&
        (with_few_neighbor_calls(*leaving) || (has_short_blocks(out) && has_short_blocks(in)))) {
      before_library_collective(comm);
      const int error = std::apply([&](auto... arguments) { return inside(via.*slot, arguments..., comm); },
                                   std::tuple_cat(out.arguments(), in.arguments()));
      if (error == MPI_SUCCESS) count_left_neighbor_call(*leaving, 0);
      return error;
    }
  if (may_dispatch<via>() && !leaving) [[unlikely]]
    if (const std::optional<int> done = dispatch_neighbor(name(id), form, out, in, comm, tail...)) return *done;
  if constexpr (blocking<Tail...>) before_library_collective(comm);
  using Work = CollectiveCompletion<Out, In>;
  const auto call = [&](const auto& out_arguments, const auto& in_arguments) {
    return std::apply([&](auto... arguments) { return inside(via.*slot, arguments..., comm, tail...); },
                      std::tuple_cat(out_arguments, in_arguments));
  };
  const Neighbors* neighbors = neighbors_of(comm);
  // With the engine only messages to the rank itself are packed as a whole; here all blocks are, or none.
  const bool packs = gpu_runtime_detected() || runtime().options().forced ||
                     (!runtime().has_engine() && packed_neighbor_blocks_gain());
  const bool may_gain = packs && neighbors && has_arguments(out) && has_arguments(in) &&
                        (find_candidate(out.type) || find_candidate(in.type) || gpu_runtime_detected());
  const int error = exchange_or_forward<Work>(
      may_gain, comm,
      [&](Work& work) {
        const bool sends = work.out.prepare(out, neighbors->destinations, comm, persistent<Tail...>);
        const bool receives = work.in.prepare(in, neighbors->sources, comm, persistent<Tail...>);
        if (reporting()) [[unlikely]] {
          work.out.record_in_report(id);
          work.in.record_in_report(id);
        }
        return sends || receives || work.failed();
      },
      [&](const Work& work) { return call(work.out.arguments(out), work.in.arguments(in)); },
      [&] {
        const auto unchanged = [&] { return call(out.arguments(), in.arguments()); };
        if (persistent<Tail...> || may_gain) return unchanged();
        return call_and_record(name(id), unchanged, [&]() -> LeftCall {
          const std::optional<dispatch_detail::BlockBytes> sent =
              neighbors ? dispatch_detail::neighbor_bytes(out, neighbors->destinations) : std::nullopt;
          return {sent ? sent->sum : 0, left_neighbor_reason(comm, form, blocking<Tail...>)};
        });
      },
      [&] {
        return refuse_device_memory(comm, {{out.buffer, 1, out.type}, {in.buffer, 1, in.type}});
      },
      tail...);
  if (leaving && error == MPI_SUCCESS) {
    const std::optional<dispatch_detail::BlockBytes> sent =
        neighbors ? dispatch_detail::neighbor_bytes(out, neighbors->destinations) : std::nullopt;
    count_left_neighbor_call(*leaving, sent ? sent->sum : 0);
  }
  return error;
}

template <Calls& via, auto slot, class Count, class... Tail>
int allgather(CallId id, OneBlock<const void*, Count> out, EqualBlocks<void*, Count> in, MPI_Comm comm, Tail... tail) {
  return exchange<via, slot, MessageToAll<Count>, EqualNeighborBlocks<void*, Count>>(id, NeighborForm::alltoall, out,
                                                                                     in, comm, tail...);
}

template <Calls& via, auto slot, class Count, class Displacement, class... Tail>
int allgatherv(CallId id, OneBlock<const void*, Count> out, VaryingBlocks<void*, Count, Displacement> in, MPI_Comm comm,
               Tail... tail) {
  return exchange<via, slot, MessageToAll<Count>, VaryingNeighborBlocks<void*, Count, Displacement>>(
      id, NeighborForm::alltoall, out, in, comm, tail...);
}

template <Calls& via, auto slot, class Count, class... Tail>
int alltoall(CallId id, EqualBlocks<const void*, Count> out, EqualBlocks<void*, Count> in, MPI_Comm comm,
             Tail... tail) {
  return exchange<via, slot, EqualNeighborBlocks<const void*, Count>, EqualNeighborBlocks<void*, Count>>(
      id, NeighborForm::alltoall, out, in, comm, tail...);
}

template <Calls& via, auto slot, class Count, class Displacement, class... Tail>
int alltoallv(CallId id, VaryingBlocks<const void*, Count, Displacement> out,
              VaryingBlocks<void*, Count, Displacement> in, MPI_Comm comm, Tail... tail) {
  return exchange<via, slot, VaryingNeighborBlocks<const void*, Count, Displacement>,
                  VaryingNeighborBlocks<void*, Count, Displacement>>(id, NeighborForm::alltoallv, out, in, comm,
                                                                     tail...);
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_NEIGHBOR_ALLGATHER_ENTRY(name, Count, Displacement, rest, rest_names)          \
  BESTRIDE_AMONG_ALL(name, allgather, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)), \
                     (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_NEIGHBOR_ALLGATHERV_ENTRY(name, Count, Displacement, rest, rest_names)                           \
  BESTRIDE_AMONG_ALL(name, allgatherv, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(OneBlock, Count)),                  \
                     (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest, \
                     rest_names)
#define BESTRIDE_NEIGHBOR_ALLTOALL_ENTRY(name, Count, Displacement, rest, rest_names)             \
  BESTRIDE_AMONG_ALL(name, alltoall, (BESTRIDE_SEND(Count)), (BESTRIDE_SENT(EqualBlocks, Count)), \
                     (BESTRIDE_RECEIVE(Count)), (BESTRIDE_RECEIVED(EqualBlocks, Count)), rest, rest_names)
#define BESTRIDE_NEIGHBOR_ALLTOALLV_ENTRY(name, Count, Displacement, rest, rest_names)                                \
  BESTRIDE_AMONG_ALL(name, alltoallv, (BESTRIDE_SEND_V(Count, Displacement)), (BESTRIDE_SENT_V(Count, Displacement)), \
                     (BESTRIDE_RECEIVE_V(Count, Displacement)), (BESTRIDE_RECEIVED_V(Count, Displacement)), rest,     \
                     rest_names)

BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLGATHER_ENTRY, Neighbor_allgather, Ineighbor_allgather)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLGATHERV_ENTRY, Neighbor_allgatherv, Ineighbor_allgatherv)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLTOALL_ENTRY, Neighbor_alltoall, Ineighbor_alltoall)
BESTRIDE_COLLECTIVE_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLV_ENTRY, Neighbor_alltoallv, Ineighbor_alltoallv)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLGATHER_ENTRY, Neighbor_allgather)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLGATHERV_ENTRY, Neighbor_allgatherv)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLTOALL_ENTRY, Neighbor_alltoall)
BESTRIDE_PERSISTENT_FORMS(BESTRIDE_NEIGHBOR_ALLTOALLV_ENTRY, Neighbor_alltoallv)
