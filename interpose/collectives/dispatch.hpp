// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dispatch of a collective to the hierarchy or to the memory of one node. Entry points call this before they call the
// MPI library.
//
// All members reach the same decision: it follows from arguments that are the same on all of them, and from what they
// have agreed on. Invalid arguments are left to the MPI library, which reports the error. The decision is made before
// device memory is staged for the MPI library or passed to a GPU-aware one, because the other members don't know where
// this rank's buffers are.
#include <mpi.h>

#include <algorithm>
#include <optional>
#include <span>

#include "interpose/collectives/communicator.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/library_order.hpp"
#include "interpose/collectives/member.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/operations.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/collectives/quantized_operations.hpp"
#include "interpose/collectives/reduction_order.hpp"
#include "interpose/collectives/refused_calls.hpp"
#include "interpose/collectives/requests.hpp"
#include "interpose/collectives/short_calls.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/respelled_blocks.hpp"
#include "interpose/message/shadowed_collective.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

/// True if a collective may be dispatched: a communicator of this job may have a hierarchy, and the call is not nested.
template <Calls& via>
bool may_dispatch() noexcept {
  return job() != nullptr && !nested<via>();
}

template <class... Tail>
constexpr CallForm form_of = blocking<Tail...>     ? CallForm::blocking
                             : persistent<Tail...> ? CallForm::persistent
                                                   : CallForm::nonblocking;

/// The bytes of CollectiveShape for a collective of `count` elements of `type`; 0: none, or not known. `per_rank`: each
/// rank has `count` elements.
[[gnu::always_inline]] inline std::int64_t bytes_moved(const CommEntry* entry, bool per_rank, MPI_Datatype type,
                                                       std::int64_t count) noexcept {
  std::int64_t bytes = 0;
  return entry && count > 0 && !__builtin_mul_overflow(count, runtime().types.size_of(type), &bytes) &&
                 !__builtin_mul_overflow(bytes, per_rank ? entry->size() : 1, &bytes)
             ? bytes
             : 0;
}
/// The bytes of CollectiveShape for a collective that moves data; 0: none, not known, or each member knows only its own
/// sizes.
template <AtRoot only, class Out, class In>
[[gnu::always_inline]] inline std::int64_t bytes_moved(const CommEntry* entry, const Out& out, const In& in,
                                                       int root) noexcept {
  if constexpr (Out::has_arrays || In::has_arrays) {
    return 0;
  } else {
    // Of a rooted one, the other direction is not significant on this rank.
    const bool sends = only == AtRoot::neither ? Out::many : entry && (entry->rank() == root) == (only == AtRoot::out);
    return bytes_moved(entry, true, sends ? out.type : in.type, sends ? out.count : in.count);
  }
}

/// What an entry does with a collective.
enum class FirstStep {
  call_library,  ///< calls the library, and nothing else is left to do: the call is counted, or it is refused
  leave,         ///< leaves the call to the library, on the entry's usual path
  dispatch,      ///< calls a dispatch function, which may still leave the call to the library
};
/// In the initialization of a persistent collective, whether it is left to the library because that refuses the call of
/// a member. Members whose calls are good may have to agree on more, so all of them tell each other. `refused`: the
/// call of this one.
bool refused_on_any_member(MPI_Comm comm, bool refused) noexcept;

/// True if the library refuses a call that may wait for other members, and that may have to be counted: refused(entry).
/// In a communicator with memory the dispatch functions find that out.
template <Calls& via, class... Tail, class Refused>
[[gnu::always_inline]] inline bool is_refused([[maybe_unused]] MPI_Comm comm, const CommEntry* entry,
                                              const Refused& refused) noexcept {
  if constexpr (!blocking<Tail...> && !persistent<Tail...>) return false;
  if (!may_dispatch<via>()) return false;
  const bool mine = entry && entry->size() >= 2 && !(blocking<Tail...> && has_memory(*entry)) && refused(*entry);
  if constexpr (persistent<Tail...>)
    return refused_on_any_member(comm, mine);
  else
    return mine;
}

/// Entries ask this first. `bytes`: the result of bytes_moved(). examined() is called for a collective that is left to
/// the library and tells whether its buffers or types have to be looked at. refused(entry): whether the library refuses
/// the call; see is_refused().
///
/// A collective is left here if the members have agreed to do that at its size, or there is one member only, or there
/// is no shared memory. The answer is the same on all of them, because the numbers of bytes are. It costs 60
/// instructions, a dispatch that ends in the same answer 250, with a datatype that has not been decoded yet 2900.
template <Calls& via, class... Tail, class Examined, class Refused>
[[gnu::always_inline]] inline FirstStep first_step(MPI_Comm comm, CommEntry* entry, Collective what, std::int64_t bytes,
                                                   const Examined& examined, const Refused& refused) noexcept {
  if (persistent<Tail...> && is_refused<via, Tail...>(comm, entry, refused)) return FirstStep::leave;
  if (entry && (entry->size() < 2 || (bytes > 0 && collectives_of(*entry).leaves(what, form_of<Tail...>, bytes)))) {
    if (any_collective_pending() || reporting() || nested<via>() || examined()) return FirstStep::leave;
    if (blocking<Tail...> && collectives_of(*entry).on_one_node && counts(*entry, what) && !refused(*entry))
      count_left_collective(*entry);
    return FirstStep::call_library;
  }
  if (!may_dispatch<via>()) return FirstStep::leave;
  if (blocking<Tail...> && entry && has_memory(*entry)) return FirstStep::dispatch;
  if (!persistent<Tail...> && is_refused<via, Tail...>(comm, entry, refused)) [[unlikely]]
    return FirstStep::call_library;
  return blocking<Tail...> && bytes > 0 && has_no_memory(*entry, bytes) ? FirstStep::leave : FirstStep::dispatch;
}

/// Where a call goes.
struct Route {
  CollectiveQueue* queue = nullptr;  ///< both nullptr: to the MPI library
  OneNode* one_node = nullptr;
  std::shared_ptr<CollectiveQueue> owner;
  PipelineSettings pipeline;
  std::int64_t bytes = 0;
  double saved_s = 0;  ///< as predicted
  bool wants_full_memory = false;
  explicit operator bool() const noexcept { return queue || one_node; }
};
/// The route of a collective between nodes. `entry` is that of a valid communicator. `bytes`: the bytes of
/// CollectiveShape. `blocking`: the call is blocking. `exact`: the hierarchy and the library give the same bits;
/// the same on all members.
Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool exact) noexcept;
/// The route of a nonblocking collective of members on one node. `bytes`: the bytes of CollectiveShape; no value if
/// each member knows only its own sizes.
Route nonblocking_on_one_node(CommEntry& entry, Collective what, std::optional<std::int64_t> bytes) noexcept;
/// The route of a persistent collective of members on one node, in its initialization; waits for the other members.
/// *bytes: the bytes of CollectiveShape as far as this member knows; it becomes the largest of all members'. `varying`:
/// the collective has a size for each block. `gaps`: for an alltoall, whether a datatype of this member has gaps.
Route persistent_on_one_node(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t* bytes, bool varying,
                             bool gaps) noexcept;

/// Carries out an operation on this thread and waits for the other members. True: it succeeded.
bool run_to_end(const Route& route, Operation& operation) noexcept;
/// Carries out an operation, or gives the application a request for it. Returns the error of the call; no value:
/// another member has left it, so it is left to the MPI library. `call`: static text such as "MPI_Bcast", for the
/// report.
std::optional<int> execute_collective(const Route& route, MPI_Comm comm, const char* call,
                                      std::unique_ptr<Operation> operation, bool persistent, MPI_Request* request);

namespace dispatch_detail {

/// Initialization calls of persistent collectives may also wait for other members (MPI-4, 6.13).
template <class... Tail>
CommMember member_of(MPI_Comm comm) noexcept {
  return CommMember(comm, blocking<Tail...> || persistent<Tail...>);
}
/// False: the request pointer is null, which the MPI library reports.
template <class... Tail>
bool has_request(Tail... tail) noexcept {
  return blocking<Tail...> || request_of(tail...);
}

inline bool valid_root(const CommEntry& entry, int root) noexcept { return root >= 0 && root < entry.size(); }

/// Packed bytes of `count` elements; -1: the type is not known, or `count` is negative or too large.
inline std::int64_t packed_bytes(const ElementSize& element, std::int64_t count) noexcept {
  std::int64_t bytes = 0;
  return element.packed < 0 || count < 0 || __builtin_mul_overflow(element.packed, count, &bytes) ? -1 : bytes;
}

/// The route of a collective whose bytes all members know, on one node or between nodes. A persistent collective gets a
/// queue of its own. `element`: bytes of an element of a reduction. `gaps`: for an alltoall, whether a datatype of this
/// member has gaps. `bytes`, `exact`: see route().
template <class... Tail>
Route route_call(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t bytes,
                 [[maybe_unused]] std::int64_t element, bool exact, [[maybe_unused]] bool gaps) noexcept {
  if (may_share_memory(entry)) {
    if constexpr (blocking<Tail...>) {
      Route here;
      here.bytes = bytes;
      here.one_node = choose_one_node(entry, what, bytes, element, gaps);
      return here;
    } else if constexpr (persistent<Tail...>) {
      return persistent_on_one_node(comm, entry, what, &bytes, false, gaps);
    } else {
      return nonblocking_on_one_node(entry, what, bytes);
    }
  }
  Route to = route(entry, what, bytes, blocking<Tail...>, exact);
  if constexpr (persistent<Tail...>)
    if (to.queue) to.queue = (to.owner = make_persistent_queue(comm, entry, bytes)).get();
  return to;
}

/// The route of a collective of members on one node of which each knows only the sizes of its own blocks. *longest:
/// bytes of the longest block that this member knows. For a persistent call it becomes the longest of all members; for
/// other calls it is unchanged, because the sizes are sent with the data.
template <class... Tail>
Route route_varying(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t* longest,
                    [[maybe_unused]] bool gaps) noexcept {
  if constexpr (blocking<Tail...>) {
    Route here;
    here.one_node = choose_one_node(entry, what, whole_of(*longest, entry.size()));
    return here;
  } else if constexpr (persistent<Tail...>) {
    std::int64_t bytes = whole_of(*longest, entry.size());
    Route here = persistent_on_one_node(comm, entry, what, &bytes, true, gaps);
    *longest = bytes / entry.size();
    return here;
  } else {
    return nonblocking_on_one_node(entry, what, std::nullopt);
  }
}

/// Carries out the operation that make(staged) returns, which takes over `staged`. If `make` throws, the call returns
/// an error, because the other members may have carried it out.
template <class Make, class... Tail>
std::optional<int> carry(const Route& route, MPI_Comm comm, const char* call, Make make, Tail... tail) {
  std::unique_ptr<Operation> operation;
  try {
    StagedBlocks staged(comm);
    operation = make(staged);
    operation->staged = std::move(staged);
  } catch (const Error& why) {
    if (route.one_node) route.one_node->leave();
    report_transfer_failure(why);
    return raise_error(comm);
  } catch (...) {
    if (route.one_node) route.one_node->leave();
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
  return execute_collective(route, comm, call, std::move(operation), persistent<Tail...>, request_of(tail...));
}

template <class Given>
UserBlocks blocks_of(const Given& given, int ranks, Access access, StagedBlocks& staged, int only = -1) {
  constexpr int few = 16;
  Range on_stack[few];
  std::vector<Range> others(ranks > few ? static_cast<std::size_t>(ranks) : 0);
  const std::span blocks(ranks > few ? others.data() : on_stack, static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) blocks[static_cast<std::size_t>(rank)] = block_elements(given, rank);
  return UserBlocks(given.buffer, blocks, given.type, access, staged, only);
}

/// Packed bytes of all blocks; -1: an argument is invalid.
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
    if (given.counts[rank] < 0 || __builtin_mul_overflow(std::int64_t{given.counts[rank]}, element, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum))
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

/// `bytes` are those of a call that may be dispatched; -1: its arguments are invalid. Ranks that share memory also take
/// part in blocking calls without data: in one whose sizes don't match, which is an error, others may wait for them.
template <class... Tail>
bool has_size(const CommEntry& entry, std::int64_t bytes) noexcept {
  return bytes > 0 || (bytes == 0 && blocking<Tail...> && may_share_memory(entry));
}

}  // namespace dispatch_detail

/// True if allgathers of this communicator may be approximate, as far as all members know without looking at the types.
bool may_be_quantized(const CommEntry& entry) noexcept;

// The functions below return the error of the call if it was carried out. Otherwise nothing was done and the call is
// left to the library.

template <class Count, class... Tail>
std::optional<int> dispatch_bcast(const char* call, void* buffer, Count count, MPI_Datatype type, int root,
                                  MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const std::int64_t bytes = packed_bytes(element_size(type), count);
  if (!entry || !has_size<Tail...>(*entry, bytes) || !valid_root(*entry, root) || !has_request(tail...) ||
      (bytes > 0 && no_place(buffer, type)))
    return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::broadcast, form_of<Tail...>, bytes)) return std::nullopt;
  const Route to = route_call<Tail...>(comm, *entry, Collective::broadcast, bytes, 1, true, false);
  if (!to) return std::nullopt;
  if constexpr (blocking<Tail...>)
    if (Rounds* const rounds = at_once(to.one_node, bytes, false))
      if (const PlainData data = plain_data(buffer, type, bytes))
        return carry_out_at_once(*to.one_node, comm,
                                 [&](auto wait) { short_bcast(*rounds, data.data, bytes, root, wait); });
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const Access access = entry->rank() == root ? Access::read : Access::written;
        return std::make_unique<BroadcastOperation>(
            blocks_of(OneBlock<void*, Count>{buffer, count, type}, 1, access, staged), root);
      },
      tail...);
}

/// Whether and how a reduction of this operation and type may go through the hierarchy. Elements longer than a page may
/// not fit into staging.
struct DispatchedReduction {
  bool possible = false;
  bool in_one_order = false;
  bool if_library_agrees = false;  ///< not possible, unless the MPI library has the same order (library_order.hpp)
  bool if_ordinary = false;        ///< not possible, unless the result, which all members have, shows that the order
                                   ///< does not matter; otherwise the library repeats the call
  bool in_some_order = false;      ///< possible wherever the order of its operations is known or permitted
  /// True if the result has the same bits in any order.
  bool exact() const noexcept { return (possible || if_ordinary) && !in_one_order; }
  /// The order in which the reduction is carried out. `found`: the order of the MPI library, or nullptr.
  ReductionTree tree(const SumOrder* found, int ranks) const noexcept {
    if (!in_one_order) return {};
    return found ? tree_of(*found, ranks) : ReductionTree(ReductionTree::Form::balanced, ranks);
  }
};
DispatchedReduction dispatch_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes,
                                       bool blocking) noexcept;
/// How a reduction without elements is dispatched. An operation that is not defined for the type is an error then, too.
DispatchedReduction reduction_of_nothing(MPI_Op op, MPI_Datatype type) noexcept;

/// MPI_Allreduce or MPI_Reduce at once: the result of carry_out_at_once(). `order`: of the MPI library, or nullptr.
inline std::optional<int> reduce_at_once(Rounds& rounds, OneNode& node, const ReductionCall& call,
                                         const ReductionTree& tree, SumOrder* order, const void* send, void* receive,
                                         std::int64_t bytes, MPI_Comm comm) noexcept {
  auto* const result = static_cast<std::byte*>(receive);
  auto* const input = send == MPI_IN_PLACE ? result : static_cast<std::byte*>(const_cast<void*>(send));
  MpiReduction reduction(call.op, call.type, tree);
  const bool rooted = call.what == Collective::reduce;
  std::int64_t leaves = 0;
  if (order) {
    reduction.leave_nans(rounds.ranks());
    leaves = reduction.must_leave(Operand(input, bytes));
    // Of a reduce, only the root waits for the others.
    if (rooted && !node.agree({&leaves, 1})) leaves = 1;
  }
  std::optional<int> done;
  if (!leaves)
    done = carry_out_at_once(node, comm, [&](auto wait) {
      short_reduce(rounds, input, result, bytes, rooted ? call.root : -1, reduction, wait);
    });
  if (order) order->asking.answered(!done);
  return done;
}

template <class Count, class... Tail>
std::optional<int> dispatch_allreduce(const char* call, const void* send, void* receive, Count count, MPI_Datatype type,
                                      MPI_Op op, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  const std::int64_t bytes = packed_bytes(element, count);
  if (!entry || !has_size<Tail...>(*entry, bytes) || (bytes == 0 && !predefined(type)) || receive == MPI_IN_PLACE ||
      !has_request(tail...) || (bytes > 0 && (send == receive || no_buffer(send, type) || no_buffer(receive, type))))
    return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::allreduce, form_of<Tail...>, bytes)) return std::nullopt;
  const DispatchedReduction how = bytes == 0 ? reduction_of_nothing(op, type)
                                             : dispatch_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  const auto codes = quantized_sum(*entry, op, type);
  const ReductionCall sum{Collective::allreduce, 0, op, type, static_cast<std::int64_t>(count)};
  SumOrder* order = nullptr;
  AskingInterval& extremes = collectives_of(*entry).extremes;
  if (!how.possible && !codes && !(how.if_ordinary && extremes.asks()) &&
      !(how.if_library_agrees && (order = find_sum_order(*entry, sum))))
    return std::nullopt;
  const Route to = route_call<Tail...>(comm, *entry, Collective::allreduce, bytes, element.packed, how.exact(), false);
  if (!to || (order && !same_sum_order(*order, sum, to, comm, entry->rank(), entry->size()))) return std::nullopt;
  if constexpr (blocking<Tail...>)
    if (Rounds* const rounds = codes || how.if_ordinary ? nullptr : at_once(to.one_node, bytes, type))
      return reduce_at_once(*rounds, *to.one_node, sum, how.tree(order, entry->size()), order, send, receive, bytes,
                            comm);
  bool in_vain = false;
  const std::optional<int> error = carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input;
        if (send != MPI_IN_PLACE)
          input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read, staged));
        UserBlocks output =
            blocks_of(OneBlock<void*, Count>{receive, count, type}, 1, input ? Access::written : Access::both, staged);
        if (codes) return std::make_unique<QuantizedAllreduce>(std::move(input), std::move(output), *codes);
        MpiReduction reduction(op, type, how.tree(order, entry->size()));
        if (how.if_ordinary) reduction.mark_order();
        if (order && to.one_node) reduction.leave_nans(entry->size());
        return std::make_unique<AllreduceOperation>(std::move(input), std::move(output), std::move(reduction),
                                                    how.if_ordinary || (order && to.queue) ? &in_vain : nullptr);
      },
      tail...);
  if (how.if_ordinary && error == MPI_SUCCESS) extremes.answered(in_vain);
  if (order) order->asking.answered(in_vain || !error);
  return in_vain ? std::nullopt : error;
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `count_of(rank)` elements for each rank.
template <class CountOf, class... Tail>
std::optional<int> dispatch_reduce_scatter(const char* call, const void* send, void* receive, CountOf count_of,
                                           MPI_Datatype type, MPI_Op op, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  if (!entry || receive == MPI_IN_PLACE || send == receive || !has_request(tail...)) return std::nullopt;
  std::int64_t elements = 0;
  for (int rank = 0; rank < entry->size(); ++rank) {
    const std::int64_t count = count_of(rank);
    if (count < 0 || __builtin_add_overflow(elements, count, &elements)) return std::nullopt;
  }
  const std::int64_t bytes = packed_bytes(element, elements);
  if (bytes <= 0 || no_buffer(send, type) || (count_of(entry->rank()) > 0 && no_place(receive, type)))
    return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::reduce_scatter, form_of<Tail...>, bytes)) return std::nullopt;
  const DispatchedReduction how = dispatch_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  const auto codes = quantized_sum(*entry, op, type);
  if (!how.possible && !codes) return std::nullopt;
  const Route to =
      route_call<Tail...>(comm, *entry, Collective::reduce_scatter, bytes, element.packed, how.exact(), false);
  if (!to) return std::nullopt;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const bool in_place = send == MPI_IN_PLACE;
        std::vector<Range> blocks;
        std::int64_t before = 0;
        for (int rank = 0; rank < entry->size(); before += count_of(rank), ++rank)
          blocks.push_back({before, before + count_of(rank)});
        UserBlocks input(in_place ? receive : send, blocks, type, Access::read, staged);
        const Range result{0, count_of(entry->rank())};
        UserBlocks output(receive, {&result, 1}, type, Access::written, staged);
        ReduceScatterResult kept =
            in_place ? ReduceScatterResult(runtime().pool, output.bytes(0)) : ReduceScatterResult();
        if (codes)
          return std::make_unique<QuantizedReduceScatter>(std::move(input), std::move(output), std::move(kept), *codes);
        return std::make_unique<ReduceScatterOperation>(std::move(input), std::move(output), std::move(kept),
                                                        MpiReduction(op, type, how.tree(nullptr, entry->size())));
      },
      tail...);
}

template <class Count, class... Tail>
std::optional<int> dispatch_reduce(const char* call, const void* send, void* receive, Count count, MPI_Datatype type,
                                   MPI_Op op, int root, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(type);
  const std::int64_t bytes = packed_bytes(element, count);
  if (!entry || !has_size<Tail...>(*entry, bytes) || (bytes == 0 && !predefined(type)) || !valid_root(*entry, root) ||
      !has_request(tail...))
    return std::nullopt;
  const bool at_root = entry->rank() == root;
  if (at_root ? receive == MPI_IN_PLACE : send == MPI_IN_PLACE) return std::nullopt;
  if (bytes > 0 && (no_buffer(send, type) || (at_root && (send == receive || no_buffer(receive, type)))))
    return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::reduce, form_of<Tail...>, bytes)) return std::nullopt;
  const DispatchedReduction how = bytes == 0 ? reduction_of_nothing(op, type)
                                             : dispatch_reduction(*entry, op, type, element.packed, blocking<Tail...>);
  const ReductionCall sum{Collective::reduce, root, op, type, static_cast<std::int64_t>(count)};
  SumOrder* order = nullptr;
  if (!how.possible && !(how.if_library_agrees && (order = find_sum_order(*entry, sum)))) return std::nullopt;
  const Route to = route_call<Tail...>(comm, *entry, Collective::reduce, bytes, element.packed, how.exact(), false);
  if (!to || (order && !same_sum_order(*order, sum, to, comm, entry->rank(), entry->size()))) return std::nullopt;
  if constexpr (blocking<Tail...>)
    if (Rounds* const rounds = at_once(to.one_node, bytes, type))
      return reduce_at_once(*rounds, *to.one_node, sum, how.tree(order, entry->size()), order, send, receive, bytes,
                            comm);
  const std::optional<int> error = carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        std::optional<UserBlocks> input, output;
        if (send != MPI_IN_PLACE)
          input.emplace(blocks_of(OneBlock<const void*, Count>{send, count, type}, 1, Access::read, staged));
        if (at_root)
          output.emplace(blocks_of(OneBlock<void*, Count>{receive, count, type}, 1,
                                   input ? Access::written : Access::both, staged));
        MpiReduction reduction(op, type, how.tree(order, entry->size()));
        if (order) reduction.leave_nans(entry->size());
        return std::make_unique<ReduceOperation>(std::move(input), std::move(output), root, std::move(reduction));
      },
      tail...);
  if (order) order->asking.answered(!error);
  return error;
}

}  // namespace bestride::inline interpose
