// SPDX-License-Identifier: Apache-2.0
#pragma once
// Spreading a collective over the hierarchy, if that is the choice: what the entries ask before they go on to the MPI library.
//
// All members come to the same answer: it follows from arguments that are the same on all of them, and from what they have agreed on. Arguments
// that are not sound are MPI's, whose error it is.
#include <mpi.h>

#include <algorithm>
#include <optional>

#include "interpose/back/exchange.hpp"
#include "interpose/back/gpu/stage_moved.hpp"
#include "interpose/back/hierarchical/member.hpp"
#include "interpose/back/hierarchical/operations.hpp"
#include "interpose/back/hierarchical/predefined.hpp"
#include "interpose/back/hierarchical/quantised_operations.hpp"
#include "interpose/back/hierarchical/requests.hpp"
#include "interpose/back/spelled_blocks.hpp"

namespace bestride {

/// Some communicator of this job may have a hierarchy: one load.
inline bool may_spread() noexcept { return job() != nullptr; }

/// Where and how a call goes.
struct Route {
  CollectiveQueue* queue = nullptr;  ///< nullptr: to the MPI library
  std::shared_ptr<CollectiveQueue> owner;
  Pace pace;
  std::int64_t bytes = 0;
  double saved_s = 0;  ///< as predicted
};
/// `entry`: of a valid communicator. `blocking`: the call's form.
Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking) noexcept;

/// Carries an operation out, or gives the application a request for it. The call's error.
/// `call`: "MPI_Bcast", static text, for the report.
int carry_spread(const Route& route, MPI_Comm comm, const char* call, std::unique_ptr<Operation> operation, bool persistent, MPI_Request* request) noexcept;

namespace spread_detail {

/// The persistent forms may wait for other members, too (MPI-4, 6.13).
template <class... Tail>
Member member_of(MPI_Comm comm) noexcept {
  return Member(comm, blocking<Tail...> || persistent<Tail...>);
}
/// False: there is nowhere to put the request, which MPI says.
template <class... Tail>
bool has_place(Tail... tail) noexcept {
  return blocking<Tail...> || request_of(tail...);
}

/// make() gives the operation. It may throw: other members count on this rank, so that is an error of the call's.
template <class Make, class... Tail>
int carry(const Route& route, MPI_Comm comm, const char* call, Make make, Tail... tail) noexcept {
  std::unique_ptr<Operation> operation;
  try {
    operation = make();
  } catch (...) {
    return raise(comm, MPI_ERR_NO_MEM);
  }
  return carry_spread(route, comm, call, std::move(operation), persistent<Tail...>, request_of(tail...));
}

template <class Buffer, class Count>
void add_block(UserBlocks& blocks, const OneBlock<Buffer, Count>& given, int) {
  blocks.add(given.buffer, 0, given.count);
}
template <class Buffer, class Count>
void add_block(UserBlocks& blocks, const EqualBlocks<Buffer, Count>& given, int rank) {
  blocks.add(given.buffer, std::int64_t{rank} * given.count, given.count);
}
template <class Buffer, class Count, class At>
void add_block(UserBlocks& blocks, const VaryingBlocks<Buffer, Count, At>& given, int rank) {
  blocks.add(given.buffer, given.at[rank], given.counts[rank]);
}
template <class Given>
UserBlocks blocks_of(const Given& given, int ranks, Access access) {
  UserBlocks blocks(given.type, access);
  blocks.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) add_block(blocks, given, rank);
  return blocks;
}

/// Packed bytes of all blocks; -1: an argument is not sound.
template <class Buffer, class Count>
std::int64_t all_bytes(const EqualBlocks<Buffer, Count>& given, std::int64_t element, int ranks) noexcept {
  std::int64_t bytes = 0;
  return given.count < 0 || __builtin_mul_overflow(std::int64_t{given.count} * ranks, element, &bytes) ? -1 : bytes;
}
template <class Buffer, class Count, class At>
std::int64_t all_bytes(const VaryingBlocks<Buffer, Count, At>& given, std::int64_t element, int ranks) noexcept {
  if (!given.counts || !given.at) return -1;
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t bytes = 0;
    if (given.counts[rank] < 0 || __builtin_mul_overflow(std::int64_t{given.counts[rank]}, element, &bytes) || __builtin_add_overflow(sum, bytes, &sum))
      return -1;
  }
  return sum;
}

template <class Buffer, class Count>
std::int64_t block_bytes(const EqualBlocks<Buffer, Count>& given, std::int64_t element, int) noexcept {
  return given.count * element;
}
template <class Buffer, class Count, class At>
std::int64_t block_bytes(const VaryingBlocks<Buffer, Count, At>& given, std::int64_t element, int rank) noexcept {
  return given.counts[rank] * element;
}

template <class Buffer, class Count>
Range block_elements(const EqualBlocks<Buffer, Count>& given, int rank) noexcept {
  return {std::int64_t{rank} * given.count, (std::int64_t{rank} + 1) * given.count};
}
template <class Buffer, class Count, class At>
Range block_elements(const VaryingBlocks<Buffer, Count, At>& given, int rank) noexcept {
  return {given.at[rank], std::int64_t{given.at[rank]} + given.counts[rank]};
}
/// The same elements in the same place, sent and received, are an error that the library finds: MPICH by comparing just these, and by bytes without
/// gaps. Anything else must not be left to it, since the other members do not see it.
template <class One, class All>
bool same_place(const One& one, const All& all, const ElementSize& element, int rank) noexcept {
  const Range block = block_elements(all, rank);
  return one.type == all.type && one.count > 0 && one.count == block.bytes() &&
         one.buffer == static_cast<const std::byte*>(static_cast<const void*>(all.buffer)) + block.first * element.packed;
}
/// The library says that a null pointer is no buffer, but for types of absolute addresses.
inline bool no_buffer(const void* buffer, MPI_Datatype type) noexcept { return !buffer && predefined(type); }

}  // namespace spread_detail

/// MPI_Allgather and MPI_Allgatherv.
template <class Out, class In, class... Tail>
std::optional<int> spread_allgather(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(in.type);
  const bool in_place = out.buffer == MPI_IN_PLACE;
  if (!entry || element.packed < 0 || in.buffer == MPI_IN_PLACE || !has_place(tail...)) return std::nullopt;
  const std::int64_t bytes = all_bytes(in, element.packed, entry->size());
  if (bytes <= 0 || no_buffer(in.buffer, in.type)) return std::nullopt;
  // What this rank sends is of the size of its block; where it is not, MPI says so.
  if (!in_place) {
    const ElementSize sent = element_size(out.type);
    std::int64_t own = 0;
    if (sent.packed < 0 || out.count < 0 || __builtin_mul_overflow(sent.packed, std::int64_t{out.count}, &own)) return std::nullopt;
    if (own != block_bytes(in, element.packed, entry->rank()) || (own > 0 && no_buffer(out.buffer, out.type))) return std::nullopt;
    if (same_place(out, in, element, entry->rank())) return std::nullopt;
  }
  const Route to = route(*entry, In::has_arrays ? Collective::allgatherv : Collective::allgather, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> own;
        if (!in_place) own.emplace(blocks_of(out, 1, Access::read));
        if (const auto codes = quantised_gather(*entry, in.type))
          return std::make_unique<QuantisedAllgather>(std::move(own), blocks_of(in, entry->size(), Access::both), *codes);
        return std::make_unique<AllgatherOperation>(std::move(own), blocks_of(in, entry->size(), Access::both));
      },
      tail...);
}

template <class Count, class... Tail>
std::optional<int> spread_bcast(const char* call, void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  std::int64_t bytes = 0;
  if (!entry || element.packed < 0 || count <= 0 || root < 0 || root >= entry->size() || !has_place(tail...) ||
      __builtin_mul_overflow(element.packed, std::int64_t{count}, &bytes) || bytes == 0 || no_buffer(buffer, type))
    return std::nullopt;
  const Route to = route(*entry, Collective::broadcast, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        return std::make_unique<BroadcastOperation>(blocks_of(OneBlock<void*, Count>{buffer, count, type}, 1, Access::both), root);
      },
      tail...);
}

/// Whether and how a reduction of this operation and type may be spread. Elements longer than a page may not fit into what is staged.
struct SpreadReduction {
  bool possible = false;
  bool in_one_order = false;
};
SpreadReduction spread_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes, bool blocking) noexcept;

template <class Count, class... Tail>
std::optional<int> spread_allreduce(const char* call, const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  std::int64_t bytes = 0;
  if (!entry || element.packed <= 0 || count <= 0 || receive == MPI_IN_PLACE || send == receive || !has_place(tail...) ||
      __builtin_mul_overflow(element.packed, std::int64_t{count}, &bytes) || no_buffer(send, type) || no_buffer(receive, type))
    return std::nullopt;
  const SpreadReduction how = spread_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  const auto codes = quantised_sum(*entry, op, type);
  if (!how.possible && !codes) return std::nullopt;
  const Route to = route(*entry, Collective::allreduce, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input;
        if (send != MPI_IN_PLACE) input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read));
        UserBlocks output = blocks_of(OneBlock<void*, Count>{receive, count, type}, 1, Access::both);
        if (codes) return std::make_unique<QuantisedAllreduce>(std::move(input), std::move(output), *codes);
        return std::make_unique<AllreduceOperation>(std::move(input), std::move(output), MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `count_of(rank)` elements for each rank.
template <class CountOf, class... Tail>
std::optional<int> spread_reduce_scatter(const char* call, const void* send, void* receive, CountOf count_of, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                         Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  if (!entry || element.packed <= 0 || receive == MPI_IN_PLACE || send == receive || !has_place(tail...)) return std::nullopt;
  std::int64_t elements = 0, bytes = 0;
  for (int rank = 0; rank < entry->size(); ++rank) {
    const std::int64_t count = count_of(rank);
    if (count < 0 || __builtin_add_overflow(elements, count, &elements)) return std::nullopt;
  }
  if (elements == 0 || __builtin_mul_overflow(element.packed, elements, &bytes) || no_buffer(send, type)) return std::nullopt;
  if (count_of(entry->rank()) > 0 && no_buffer(receive, type)) return std::nullopt;
  const SpreadReduction how = spread_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  const auto codes = quantised_sum(*entry, op, type);
  if (!how.possible && !codes) return std::nullopt;
  const Route to = route(*entry, Collective::reduce_scatter, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        const bool in_place = send == MPI_IN_PLACE;
        UserBlocks input(type, Access::read), output(type, Access::written);
        input.reserve(entry->size());
        std::int64_t before = 0;
        for (int rank = 0; rank < entry->size(); before += count_of(rank), ++rank) input.add(in_place ? receive : send, before, count_of(rank));
        output.add(receive, 0, count_of(entry->rank()));
        KeptResult kept = in_place ? KeptResult(runtime().pool, output.bytes(0)) : KeptResult();
        if (codes) return std::make_unique<QuantisedReduceScatter>(std::move(input), std::move(output), std::move(kept), *codes);
        return std::make_unique<ReduceScatterOperation>(std::move(input), std::move(output), std::move(kept), MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

template <class Count, class... Tail>
std::optional<int> spread_reduce(const char* call, const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  std::int64_t bytes = 0;
  if (!entry || element.packed <= 0 || count <= 0 || root < 0 || root >= entry->size() || !has_place(tail...) ||
      __builtin_mul_overflow(element.packed, std::int64_t{count}, &bytes))
    return std::nullopt;
  const bool at_root = entry->rank() == root;
  if (at_root ? receive == MPI_IN_PLACE || send == receive || no_buffer(receive, type) : send == MPI_IN_PLACE) return std::nullopt;
  if (no_buffer(send, type)) return std::nullopt;
  const SpreadReduction how = spread_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  if (!how.possible) return std::nullopt;
  const Route to = route(*entry, Collective::reduce, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input, output;
        if (send != MPI_IN_PLACE) input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read));
        if (at_root) output.emplace(blocks_of(OneBlock<void*, Count>{receive, count, type}, 1, Access::both));
        return std::make_unique<ReduceOperation>(std::move(input), std::move(output), root, MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

/// MPI_Gather (`gathers`) and MPI_Scatter: `one` is a rank's block, `all` the root's blocks, `in_place` the root's own is there already.
template <bool gathers, class One, class All, class... Tail>
std::optional<int> spread_rooted(const char* call, const One& one, const All& all, int root, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  if (!entry || root < 0 || root >= entry->size() || !has_place(tail...)) return std::nullopt;
  const bool at_root = entry->rank() == root, in_place = at_root && one.buffer == MPI_IN_PLACE;
  if (!at_root && one.buffer == MPI_IN_PLACE) return std::nullopt;
  const ElementSize element = element_size(at_root ? all.type : one.type);
  const std::int64_t count = at_root ? all.count : one.count;
  std::int64_t block = 0, bytes = 0;
  if (element.packed <= 0 || count <= 0 || __builtin_mul_overflow(element.packed, count, &block) ||
      __builtin_mul_overflow(block, std::int64_t{entry->size()}, &bytes))
    return std::nullopt;
  if (!in_place && no_buffer(one.buffer, one.type)) return std::nullopt;
  if (at_root && (no_buffer(all.buffer, all.type) || (!in_place && same_place(one, all, element, root)))) return std::nullopt;
  if (at_root && !in_place) {
    const ElementSize own = element_size(one.type);
    std::int64_t own_bytes = 0;
    if (own.packed < 0 || one.count < 0 || __builtin_mul_overflow(own.packed, std::int64_t{one.count}, &own_bytes) || own_bytes != block) return std::nullopt;
  }
  const Route to = route(*entry, gathers ? Collective::gather : Collective::scatter, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> own, blocks;
        if (!in_place) own.emplace(blocks_of(one, 1, gathers ? Access::read : Access::both));
        if (at_root) blocks.emplace(blocks_of(all, entry->size(), gathers ? Access::both : Access::read));
        if constexpr (gathers)
          return std::make_unique<GatherOperation>(std::move(own), std::move(blocks), block, root);
        else
          return std::make_unique<ScatterOperation>(std::move(blocks), std::move(own), block, root);
      },
      tail...);
}

template <class Out, class In, class... Tail>
std::optional<int> spread_alltoall(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize sent = element_size(out.type), received = element_size(in.type);
  if (!entry || out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE || sent.packed <= 0 || received.packed <= 0 || out.count <= 0 || in.count <= 0 ||
      !has_place(tail...))
    return std::nullopt;
  const std::int64_t bytes = all_bytes(out, sent.packed, entry->size());
  if (bytes <= 0 || bytes != all_bytes(in, received.packed, entry->size()) ||
      (out.buffer == in.buffer && out.type == in.type && out.count == in.count))
    return std::nullopt;
  if (no_buffer(out.buffer, out.type) || no_buffer(in.buffer, in.type)) return std::nullopt;
  const Route to = route(*entry, Collective::alltoall, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&]() -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallOperation>(blocks_of(out, entry->size(), Access::read), blocks_of(in, entry->size(), Access::written));
      },
      tail...);
}

/// The collectives that move data, by the shapes of their two directions.
template <AtRoot only, class Out, class In, class... Tail>
std::optional<int> spread_moved(const char* call, const Out& out, const In& in, [[maybe_unused]] int root, MPI_Comm comm, Tail... tail) noexcept {
  if constexpr (only == AtRoot::neither && !Out::many && In::many) return spread_allgather(call, out, in, comm, tail...);
  else if constexpr (only == AtRoot::in && !In::has_arrays) return spread_rooted<true>(call, out, in, root, comm, tail...);
  else if constexpr (only == AtRoot::out && !Out::has_arrays) return spread_rooted<false>(call, in, out, root, comm, tail...);
  else if constexpr (only == AtRoot::neither && !Out::has_arrays && !In::has_arrays) return spread_alltoall(call, out, in, comm, tail...);
  // The sizes of the v-forms with a root are known to the root alone, those of MPI_Alltoallv to the two ranks of a pair: no member could choose.
  else return std::nullopt;
}

}  // namespace bestride
