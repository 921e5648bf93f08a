// SPDX-License-Identifier: Apache-2.0
#pragma once
// Spreading a collective over the hierarchy, if that is the choice: what the entries ask before they go on to the MPI library.
//
// All members come to the same answer: it follows from arguments that are the same on all of them, and from what they have agreed on. Arguments
// that are not sound are MPI's, whose error it is. So it is asked before device memory is staged for the MPI library, and before a GPU-aware one is handed
// it: where this rank's buffers lie, the others do not know.
#include <mpi.h>

#include <algorithm>
#include <optional>

#include "collectives/exchange.hpp"
#include "interpose/back/exchange.hpp"
#include "interpose/back/gpu/stage_moved.hpp"
#include "interpose/back/hierarchical/library_form.hpp"
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
/// `entry`: of a valid communicator. `blocking`: the call's form. `may_test`: the library's nonblocking form gives the same bits as its blocking one; known
/// alike to all members. *left: the form in which the call is the library's, if it is.
Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool may_test, LibraryForm* left) noexcept;
/// Of a collective whose sizes no member knows all of, so that no member could choose: only where BESTRIDE_COLLECTIVES=hierarchical says so.
/// `bytes`: of this rank, for the report.
Route route_of_any_size(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking) noexcept;

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

/// make(staged) gives the operation; `staged` becomes the operation's. It may throw: other members count on this rank, so that is an error of the call's.
template <class Make, class... Tail>
int carry(const Route& route, MPI_Comm comm, const char* call, Make make, Tail... tail) noexcept {
  std::unique_ptr<Operation> operation;
  try {
    StagedBlocks staged(comm);
    operation = make(staged);
    operation->staged = std::move(staged);
  } catch (const Error& why) {
    say_not_moved(why);
    return raise(comm);
  } catch (...) {
    return raise(comm, MPI_ERR_NO_MEM);
  }
  return carry_spread(route, comm, call, std::move(operation), persistent<Tail...>, request_of(tail...));
}

/// The elements that are a rank's.
template <class Buffer, class Count>
Range block_elements(const OneBlock<Buffer, Count>& given, int) noexcept {
  return {0, given.count};
}
template <class Buffer, class Count>
Range block_elements(const EqualBlocks<Buffer, Count>& given, int rank) noexcept {
  return {std::int64_t{rank} * given.count, (std::int64_t{rank} + 1) * given.count};
}
template <class Buffer, class Count, class At>
Range block_elements(const VaryingBlocks<Buffer, Count, At>& given, int rank) noexcept {
  return {given.at[rank], std::int64_t{given.at[rank]} + given.counts[rank]};
}
template <class Given>
UserBlocks blocks_of(const Given& given, int ranks, Access access, StagedBlocks& staged, int only = -1, const Coding* coding = nullptr) {
  std::vector<Range> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) blocks.push_back(block_elements(given, rank));
  return UserBlocks(given.buffer, blocks, given.type, access, staged, only, coding);
}

/// Packed bytes of all blocks; -1: an argument is not sound.
template <class Buffer, class Count>
std::int64_t all_bytes(const OneBlock<Buffer, Count>& given, std::int64_t element, int) noexcept {
  std::int64_t bytes = 0;
  return given.count < 0 || __builtin_mul_overflow(std::int64_t{given.count}, element, &bytes) ? -1 : bytes;
}
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
/// Packed bytes of a side whose sizes the others do not know; -1: an argument is not sound.
template <class Given>
std::int64_t sound_bytes(const Given& given, int ranks) noexcept {
  const ElementSize element = element_size(given.type);
  const std::int64_t bytes = element.packed < 0 ? -1 : all_bytes(given, element.packed, ranks);
  return bytes > 0 && no_buffer(given.buffer, given.type) ? -1 : bytes;
}

}  // namespace spread_detail

/// Whether its allgathers are approximate, as far as all members know without a look at the types.
bool may_be_quantised(const CommEntry& entry) noexcept;

// Of all that follow: the call's error where it was carried out; else nothing was done, and it is the library's in the form *left, which is set where it is
// not the form that was called.

/// MPI_Allgather and MPI_Allgatherv.
template <class Out, class In, class... Tail>
std::optional<int> spread_allgather(const char* call, LibraryForm* left, const Out& out, const In& in, MPI_Comm comm, Tail... tail) noexcept {
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
  const Route to = route(*entry, In::has_arrays ? Collective::allgatherv : Collective::allgather, bytes, blocking<Tail...>, !may_be_quantised(*entry), left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const auto codes = quantised_gather(*entry, in.type);
        const Coding coding = codes ? Coding{codes->format, codes->gathered} : Coding{};
        std::optional<UserBlocks> own;
        if (!in_place) own.emplace(blocks_of(out, 1, Access::read, staged, -1, codes ? &coding : nullptr));
        UserBlocks all = blocks_of(in, entry->size(), in_place ? Access::both : Access::written, staged, entry->rank(), codes ? &coding : nullptr);
        if (codes) return std::make_unique<QuantisedAllgather>(std::move(own), std::move(all), *codes);
        return std::make_unique<AllgatherOperation>(std::move(own), std::move(all));
      },
      tail...);
}

template <class Count, class... Tail>
std::optional<int> spread_bcast(const char* call, LibraryForm* left, void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  std::int64_t bytes = 0;
  if (!entry || element.packed < 0 || count <= 0 || root < 0 || root >= entry->size() || !has_place(tail...) ||
      __builtin_mul_overflow(element.packed, std::int64_t{count}, &bytes) || bytes == 0 || no_buffer(buffer, type))
    return std::nullopt;
  const Route to = route(*entry, Collective::broadcast, bytes, blocking<Tail...>, true, left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const Access access = entry->rank() == root ? Access::read : Access::written;
        return std::make_unique<BroadcastOperation>(blocks_of(OneBlock<void*, Count>{buffer, count, type}, 1, access, staged), root);
      },
      tail...);
}

/// Whether and how a reduction of this operation and type may be spread. Elements longer than a page may not fit into what is staged.
struct SpreadReduction {
  bool possible = false;
  bool in_one_order = false;
  /// The same bits in any order.
  bool exact() const noexcept { return possible && !in_one_order; }
};
SpreadReduction spread_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes, bool blocking) noexcept;

template <class Count, class... Tail>
std::optional<int> spread_allreduce(const char* call, LibraryForm* left, const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) noexcept {
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
  const Route to = route(*entry, Collective::allreduce, bytes, blocking<Tail...>, how.exact(), left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input;
        if (send != MPI_IN_PLACE) input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read, staged));
        const Coding coding = codes ? Coding{codes->format, codes->gathered, entry->size()} : Coding{};
        UserBlocks output = blocks_of(OneBlock<void*, Count>{receive, count, type}, 1, input ? Access::written : Access::both, staged, -1, codes ? &coding : nullptr);
        if (codes) return std::make_unique<QuantisedAllreduce>(std::move(input), std::move(output), *codes);
        return std::make_unique<AllreduceOperation>(std::move(input), std::move(output), MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `count_of(rank)` elements for each rank.
template <class CountOf, class... Tail>
std::optional<int> spread_reduce_scatter(const char* call, LibraryForm* left, const void* send, void* receive, CountOf count_of, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
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
  const Route to = route(*entry, Collective::reduce_scatter, bytes, blocking<Tail...>, how.exact(), left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const bool in_place = send == MPI_IN_PLACE;
        std::vector<Range> blocks;
        std::int64_t before = 0;
        for (int rank = 0; rank < entry->size(); before += count_of(rank), ++rank) blocks.push_back({before, before + count_of(rank)});
        UserBlocks input(in_place ? receive : send, blocks, type, Access::read, staged);
        const Range result{0, count_of(entry->rank())};
        UserBlocks output(receive, {&result, 1}, type, Access::written, staged);
        KeptResult kept = in_place ? KeptResult(runtime().pool, output.bytes(0)) : KeptResult();
        if (codes) return std::make_unique<QuantisedReduceScatter>(std::move(input), std::move(output), std::move(kept), *codes);
        return std::make_unique<ReduceScatterOperation>(std::move(input), std::move(output), std::move(kept), MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

template <class Count, class... Tail>
std::optional<int> spread_reduce(const char* call, LibraryForm* left, const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Tail... tail) noexcept {
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
  const Route to = route(*entry, Collective::reduce, bytes, blocking<Tail...>, how.exact(), left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input, output;
        if (send != MPI_IN_PLACE) input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read, staged));
        if (at_root) output.emplace(blocks_of(OneBlock<void*, Count>{receive, count, type}, 1, input ? Access::written : Access::both, staged));
        return std::make_unique<ReduceOperation>(std::move(input), std::move(output), root, MpiReduction(op, type, how.in_one_order));
      },
      tail...);
}

/// What spread_rooted() and spread_rooted_v() end in.
template <bool gathers, class One, class All, class... Tail>
int carry_rooted(const Route& to, MPI_Comm comm, const char* call, const One& one, const All& all, const CommEntry& entry, int root, std::int64_t block,
                 Tail... tail) noexcept {
  using namespace spread_detail;
  const bool at_root = entry.rank() == root, in_place = at_root && one.buffer == MPI_IN_PLACE;
  // What is received may be shorter than its place where sizes are told, and the rest stays as it is: so all of it is read, too.
  const bool told = block == sizes_are_told;
  const Access received = told ? Access::both : Access::written;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> own, blocks;
        if (!in_place) own.emplace(blocks_of(one, 1, gathers ? Access::read : received, staged));
        if (at_root) blocks.emplace(blocks_of(all, entry.size(), !gathers ? Access::read : in_place ? Access::both : received, staged, told ? -1 : root));
        if constexpr (gathers)
          return std::make_unique<GatherOperation>(std::move(own), std::move(blocks), block, root);
        else
          return std::make_unique<ScatterOperation>(std::move(blocks), std::move(own), block, root);
      },
      tail...);
}

/// MPI_Gather (`gathers`) and MPI_Scatter: `one` is a rank's block, `all` the root's blocks, `in_place` the root's own is there already.
template <bool gathers, class One, class All, class... Tail>
std::optional<int> spread_rooted(const char* call, LibraryForm* left, const One& one, const All& all, int root, MPI_Comm comm, Tail... tail) noexcept {
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
  const Route to = route(*entry, gathers ? Collective::gather : Collective::scatter, bytes, blocking<Tail...>, true, left);
  if (!to.queue) return std::nullopt;
  return carry_rooted<gathers>(to, comm, call, one, all, *entry, root, block, tail...);
}

template <class Out, class In, class... Tail>
std::optional<int> spread_alltoall(const char* call, LibraryForm* left, const Out& out, const In& in, MPI_Comm comm, Tail... tail) noexcept {
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
  const Route to = route(*entry, Collective::alltoall, bytes, blocking<Tail...>, true, left);
  if (!to.queue) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallOperation>(blocks_of(out, entry->size(), Access::read, staged),
                                                   blocks_of(in, entry->size(), Access::written, staged), true);
      },
      tail...);
}

/// MPI_Gatherv (`gathers`) and MPI_Scatterv: as spread_rooted().
template <bool gathers, class One, class All, class... Tail>
std::optional<int> spread_rooted_v(const char* call, const One& one, const All& all, int root, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  if (!entry || root < 0 || root >= entry->size() || !has_place(tail...)) return std::nullopt;
  const bool at_root = entry->rank() == root, in_place = at_root && one.buffer == MPI_IN_PLACE;
  if (!at_root && one.buffer == MPI_IN_PLACE) return std::nullopt;
  const std::int64_t own_bytes = in_place ? 0 : sound_bytes(one, entry->size()), bytes = at_root ? sound_bytes(all, entry->size()) : own_bytes;
  if (own_bytes < 0 || bytes < 0 || (at_root && !in_place && same_place(one, all, element_size(all.type), root))) return std::nullopt;
  const Route to = route_of_any_size(*entry, gathers ? Collective::gather : Collective::scatter, bytes, blocking<Tail...>);
  if (!to.queue) return std::nullopt;
  return carry_rooted<gathers>(to, comm, call, one, all, *entry, root, sizes_are_told, tail...);
}

template <class Out, class In, class... Tail>
std::optional<int> spread_alltoallv(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) noexcept {
  using namespace spread_detail;
  const Member entry = member_of<Tail...>(comm);
  if (!entry || out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE || !has_place(tail...)) return std::nullopt;
  const std::int64_t bytes = sound_bytes(out, entry->size());
  // The library finds one buffer for both where it has one array of counts for both.
  if (bytes < 0 || sound_bytes(in, entry->size()) < 0 || (out.buffer == in.buffer && out.type == in.type && out.counts == in.counts)) return std::nullopt;
  const Route to = route_of_any_size(*entry, Collective::alltoall, bytes, blocking<Tail...>);
  if (!to.queue || !exchange_fits(to.queue->topology())) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallOperation>(blocks_of(out, entry->size(), Access::read, staged),
                                                   blocks_of(in, entry->size(), Access::both, staged), false);
      },
      tail...);
}

/// The collectives that move data, by the shapes of their two directions.
template <AtRoot only, class Out, class In, class... Tail>
std::optional<int> spread_moved(const char* call, LibraryForm* left, const Out& out, const In& in, [[maybe_unused]] int root, MPI_Comm comm, Tail... tail) noexcept {
  if constexpr (only == AtRoot::neither && !Out::many && In::many) return spread_allgather(call, left, out, in, comm, tail...);
  else if constexpr (only == AtRoot::in && In::has_arrays) return spread_rooted_v<true>(call, out, in, root, comm, tail...);
  else if constexpr (only == AtRoot::in) return spread_rooted<true>(call, left, out, in, root, comm, tail...);
  else if constexpr (only == AtRoot::out && Out::has_arrays) return spread_rooted_v<false>(call, in, out, root, comm, tail...);
  else if constexpr (only == AtRoot::out) return spread_rooted<false>(call, left, in, out, root, comm, tail...);
  else if constexpr (Out::has_arrays) return spread_alltoallv(call, out, in, comm, tail...);
  else return spread_alltoall(call, left, out, in, comm, tail...);
}

}  // namespace bestride
