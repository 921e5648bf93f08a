// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dispatch of the collectives that move data, except broadcasts.
//
// Where members know only their own sizes (MPI_Gatherv, MPI_Scatterv, MPI_Alltoallv, MPI_Alltoallw) they tell each
// other the longest block on one node (route_varying()); between nodes these are left to the MPI library.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "interpose/collectives/dispatch.hpp"

namespace bestride::inline interpose {

// The dispatch functions return the error of the call; no value: nothing was done, and the entry continues with the
// library's function.

/// MPI_Allgather and MPI_Allgatherv.
template <class Out, class In, class... Tail>
std::optional<int> dispatch_allgather(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize element = element_size(in.type);
  const bool in_place = out.buffer == MPI_IN_PLACE;
  if (!entry || element.packed < 0 || in.buffer == MPI_IN_PLACE || !has_request(tail...)) return std::nullopt;
  const std::int64_t bytes = all_bytes(in, element.packed, entry->size());
  if (!has_size<Tail...>(*entry, bytes) || (bytes > 0 && no_buffer(in.buffer, in.type))) return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::allgather, form_of<Tail...>, bytes)) return std::nullopt;
  // This rank must send as many bytes as its block has. If not, MPI reports the error.
  if (!in_place) {
    const std::int64_t own = packed_bytes(element_size(out.type), out.count);
    if (own != block_bytes(in, element.packed, entry->rank()) || (own > 0 && no_buffer(out.buffer, out.type)))
      return std::nullopt;
    if (same_place(out, in, element.packed, entry->rank())) return std::nullopt;
  }
  const Route to = route_call<Tail...>(comm, *entry, In::has_arrays ? Collective::allgatherv : Collective::allgather,
                                       bytes, 1, !may_be_quantized(*entry), false);
  if (!to) return std::nullopt;
  if constexpr (blocking<Tail...>) {
    std::int64_t longest = 0;
    for (int rank = 0; rank < entry->size(); ++rank) longest = std::max(longest, block_bytes(in, element.packed, rank));
    if (Rounds* const rounds = may_be_quantized(*entry) ? nullptr : at_once(to.one_node, longest, false)) {
      const PlainData received = plain_data(in.buffer, in.type, bytes);
      const auto all = blocks_at(received, in, element.packed);
      const std::int64_t own_bytes = all.bytes(entry->rank());
      if (const PlainData own =
              in_place ? PlainData{all.at(entry->rank()), received.known} : plain_data(out.buffer, out.type, own_bytes);
          own && received)
        return carry_out_at_once(*to.one_node, comm,
                                 [&](auto wait) { short_allgather(*rounds, own.data, own_bytes, all, wait); });
    }
  }
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        const auto codes = quantized_gather(*entry, in.type);
        std::optional<UserBlocks> own;
        if (!in_place) own.emplace(blocks_of(out, 1, Access::read, staged));
        UserBlocks all = blocks_of(in, entry->size(), in_place ? Access::both : Access::written, staged, entry->rank());
        if (codes) return std::make_unique<QuantizedAllgather>(std::move(own), std::move(all), *codes);
        return std::make_unique<AllgatherOperation>(std::move(own), std::move(all));
      },
      tail...);
}

/// The operation of a gather or a scatter. `block`: bytes of the longest block.
template <bool gathers, class One, class All>
std::unique_ptr<Operation> rooted_operation(const One& one, const All& all, bool in_place, bool at_root,
                                            std::int64_t block, int root, int ranks, StagedBlocks& staged) {
  using namespace dispatch_detail;
  std::optional<UserBlocks> own, blocks;
  if (!in_place) own.emplace(blocks_of(one, 1, gathers ? Access::read : Access::written, staged));
  if (at_root) {
    const Access access = !gathers ? Access::read : in_place ? Access::both : Access::written;
    blocks.emplace(blocks_of(all, ranks, access, staged, root));
  }
  if constexpr (gathers)
    return std::make_unique<GatherOperation>(std::move(own), std::move(blocks), block, root);
  else
    return std::make_unique<ScatterOperation>(std::move(blocks), std::move(own), block, root);
}

/// Carries out a blocking gather or scatter at once, if that is possible: the result of carry_out_at_once().
/// `longest`: bytes of the longest block that this rank knows.
template <bool gathers, class One, class All>
std::optional<std::optional<int>> rooted_at_once(const Route& to, const One& one, const All& all, bool in_place,
                                                 bool at_root, std::int64_t longest, int root, MPI_Comm comm) {
  using namespace dispatch_detail;
  Rounds* const rounds = at_once(to.one_node, longest, !gathers);
  if (!rounds) return std::nullopt;
  const std::int64_t element = at_root ? element_size(all.type).packed : 0;
  const PlainData at = at_root ? plain_data(all.buffer, all.type, longest) : PlainData{nullptr, true};
  const auto blocks = blocks_at(at, all, element);
  const std::int64_t bytes = in_place ? blocks.bytes(root) : packed_bytes(element_size(one.type), one.count);
  const PlainData own = in_place ? PlainData{blocks.at(root), at.known} : plain_data(one.buffer, one.type, bytes);
  if (!at || !own || bytes < 0) return std::nullopt;
  return carry_out_at_once(*to.one_node, comm, [&](auto wait) {
    if constexpr (gathers)
      short_gather(*rounds, own.data, bytes, blocks, root, wait);
    else
      short_scatter(*rounds, blocks, longest, own.data, bytes, root, wait);
  });
}

/// MPI_Gather (`gathers`) and MPI_Scatter. `one`: a rank's block. `all`: the root's blocks. `in_place`: the root's own
/// block is already in its place.
template <bool gathers, class One, class All, class... Tail>
std::optional<int> dispatch_rooted(const char* call, const One& one, const All& all, int root, MPI_Comm comm,
                                   Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  if (!entry || !valid_root(*entry, root) || !has_request(tail...)) return std::nullopt;
  const bool at_root = entry->rank() == root, in_place = at_root && one.buffer == MPI_IN_PLACE;
  if (!at_root && one.buffer == MPI_IN_PLACE) return std::nullopt;
  const ElementSize element = element_size(at_root ? all.type : one.type);
  const std::int64_t block = packed_bytes(element, at_root ? all.count : one.count);
  std::int64_t bytes = 0;
  if (!has_size<Tail...>(*entry, block) || __builtin_mul_overflow(block, std::int64_t{entry->size()}, &bytes))
    return std::nullopt;
  const auto no_memory = [](const auto& given) { return given.count > 0 && no_place(given.buffer, given.type); };
  if (!in_place && no_memory(one)) return std::nullopt;
  if (at_root && (no_memory(all) || (!in_place && same_place(one, all, element.packed, root)))) return std::nullopt;
  if (at_root && !in_place) {
    // A scatter that the root leaves is left by the others, too. But in a gather they may have sent their blocks.
    const std::int64_t own = packed_bytes(element_size(one.type), one.count);
    if (gathers ? own < 0 : own != block) return std::nullopt;
  }
  if (collectives_of(*entry).leaves(gathers ? Collective::gather : Collective::scatter, form_of<Tail...>, bytes))
    return std::nullopt;
  const Route to =
      route_call<Tail...>(comm, *entry, gathers ? Collective::gather : Collective::scatter, bytes, 1, true, false);
  if (!to) return std::nullopt;
  if constexpr (blocking<Tail...>)
    if (const auto done = rooted_at_once<gathers>(to, one, all, in_place, at_root, block, root, comm)) return *done;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return rooted_operation<gathers>(one, all, in_place, at_root, block, root, entry->size(), staged);
      },
      tail...);
}

/// Carries out a short contiguous alltoall in one round. Returns the result of carry_out_at_once(); no value: the call
/// needs an Operation. `sent`, `received`: bytes of an element of the two types. `longest`: bytes of the longest block.
template <class Out, class In>
std::optional<std::optional<int>> alltoall_at_once(const Route& to, const Out& out, const In& in, std::int64_t sent,
                                                   std::int64_t received, std::int64_t longest, MPI_Comm comm) {
  Rounds* const rounds = at_once(to.one_node, longest, true);
  if (!rounds) return std::nullopt;
  const PlainData given = plain_data(out.buffer, out.type, longest), taken = plain_data(in.buffer, in.type, longest);
  if (!given || !taken) return std::nullopt;
  return carry_out_at_once(*to.one_node, comm, [&](auto wait) {
    short_alltoall(*rounds, blocks_at(given, out, sent), longest, blocks_at(taken, in, received), wait);
  });
}

template <class Out, class In, class... Tail>
std::optional<int> dispatch_alltoall(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize sent = element_size(out.type), received = element_size(in.type);
  if (!entry || out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE || sent.packed < 0 || received.packed < 0 ||
      !has_request(tail...))
    return std::nullopt;
  const std::int64_t bytes = all_bytes(out, sent.packed, entry->size());
  if (!has_size<Tail...>(*entry, bytes) || bytes != all_bytes(in, received.packed, entry->size())) return std::nullopt;
  if (bytes > 0 && ((out.buffer == in.buffer && out.type == in.type && out.count == in.count) ||
                    no_buffer(out.buffer, out.type) || no_buffer(in.buffer, in.type)))
    return std::nullopt;
  if (collectives_of(*entry).leaves(Collective::alltoall, form_of<Tail...>, bytes)) return std::nullopt;
  const Route to =
      route_call<Tail...>(comm, *entry, Collective::alltoall, bytes, 1, true, has_gaps(out.type) || has_gaps(in.type));
  if (!to) return std::nullopt;
  if constexpr (blocking<Tail...>)
    if (const auto done = alltoall_at_once(to, out, in, sent.packed, received.packed, bytes / entry->size(), comm))
      return *done;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallOperation>(blocks_of(out, entry->size(), Access::read, staged),
                                                   blocks_of(in, entry->size(), Access::written, staged), false);
      },
      tail...);
}

/// MPI_Gatherv (`gathers`) and MPI_Scatterv, blocking or persistent, on one node: the sizes of all blocks are known to
/// the root only.
template <bool gathers, class One, class All, class... Tail>
std::optional<int> dispatch_varying_rooted(const char* call, const One& one, const All& all, int root, MPI_Comm comm,
                                           Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  if (!entry || !may_share_memory(*entry) || !valid_root(*entry, root) || !has_request(tail...)) return std::nullopt;
  const bool at_root = entry->rank() == root, in_place = at_root && one.buffer == MPI_IN_PLACE;
  if (!at_root && one.buffer == MPI_IN_PLACE) return std::nullopt;
  std::int64_t longest = in_place ? 0 : packed_bytes(element_size(one.type), one.count);
  if (longest < 0 || (longest > 0 && no_buffer(one.buffer, one.type))) return std::nullopt;
  if (at_root) {
    const ElementSize element = element_size(all.type);
    const std::int64_t sum = element.packed < 0 ? -1 : all_bytes(all, element.packed, entry->size());
    if (sum < 0 || (sum > 0 && no_place(all.buffer, all.type))) return std::nullopt;
    if (!in_place && same_place(one, all, element.packed, root)) return std::nullopt;
    for (int rank = 0; rank < entry->size(); ++rank)
      longest = std::max(longest, block_bytes(all, element.packed, rank));
  }
  Route to = route_varying<Tail...>(comm, *entry, gathers ? Collective::gather : Collective::scatter, &longest, false);
  if (!to) return std::nullopt;
  to.bytes = longest * entry->size();
  if constexpr (blocking<Tail...>)
    if (const auto done = rooted_at_once<gathers>(to, one, all, in_place, at_root, longest, root, comm)) return *done;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return rooted_operation<gathers>(one, all, in_place, at_root, longest, root, entry->size(), staged);
      },
      tail...);
}

/// MPI_Alltoallv, on one node.
template <class Out, class In, class... Tail>
std::optional<int> dispatch_alltoallv(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  const ElementSize sent = element_size(out.type), received = element_size(in.type);
  if (!entry || !may_share_memory(*entry) || out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE ||
      sent.packed < 0 || received.packed < 0 || !has_request(tail...))
    return std::nullopt;
  const std::int64_t out_bytes = all_bytes(out, sent.packed, entry->size());
  const std::int64_t in_bytes = all_bytes(in, received.packed, entry->size());
  if (out_bytes < 0 || in_bytes < 0 || (out_bytes > 0 && no_buffer(out.buffer, out.type)) ||
      (in_bytes > 0 && no_buffer(in.buffer, in.type)))
    return std::nullopt;
  // MPICH reports equal arguments of both directions as aliased buffers. Different counts may share a base address.
  if (out.buffer == in.buffer && out.type == in.type && out.counts == in.counts) return std::nullopt;
  std::int64_t longest = 0;
  for (int rank = 0; rank < entry->size(); ++rank)
    longest = std::max({longest, block_bytes(out, sent.packed, rank), block_bytes(in, received.packed, rank)});
  if (block_bytes(out, sent.packed, entry->rank()) != block_bytes(in, received.packed, entry->rank()))
    return std::nullopt;
  const bool gaps = has_gaps(out.type) || has_gaps(in.type);
  if (blocking<Tail...> &&
      !varying_alltoall_on_one_node(longest, gaps, collectives_of(*entry).shares_always, job()->settings.one_node))
    return std::nullopt;
  Route to = route_varying<Tail...>(comm, *entry, Collective::alltoall, &longest, gaps);
  if (!to) return std::nullopt;
  to.bytes = out_bytes;
  if constexpr (blocking<Tail...>)
    if (const auto done = alltoall_at_once(to, out, in, sent.packed, received.packed, longest, comm)) return *done;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallOperation>(blocks_of(out, entry->size(), Access::read, staged),
                                                   blocks_of(in, entry->size(), Access::written, staged),
                                                   !persistent<Tail...>);
      },
      tail...);
}

/// One direction of an MPI_Alltoallw: rank i's block is at `at[i]` bytes from `buffer`.
template <class Buffer, class Count, class Displacement>
struct TypedGiven {
  Buffer buffer;
  const Count* counts;
  const Displacement* at;
  const MPI_Datatype* types;

  const void* place(int rank) const noexcept { return static_cast<const std::byte*>(buffer) + at[rank]; }
  /// Packed bytes of a rank's block; -1: an argument is invalid.
  std::int64_t bytes(int rank) const noexcept {
    if (counts[rank] == 0) return 0;
    const std::int64_t bytes = dispatch_detail::packed_bytes(element_size(types[rank]), counts[rank]);
    return bytes > 0 && dispatch_detail::no_buffer(place(rank), types[rank]) ? -1 : bytes;
  }
  TypedUserBlocks blocks(int ranks, Access access, StagedBlocks& staged) const {
    TypedUserBlocks all(ranks);
    for (int rank = 0; rank < ranks; ++rank) all.add(place(rank), counts[rank], types[rank], access, staged);
    return all;
  }
};

/// MPI_Alltoallw, on one node.
template <class Out, class In, class... Tail>
std::optional<int> dispatch_alltoallw(const char* call, const Out& out, const In& in, MPI_Comm comm, Tail... tail) {
  using namespace dispatch_detail;
  const CommMember entry = member_of<Tail...>(comm);
  if (!entry || !may_share_memory(*entry) || out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE || !out.counts ||
      !out.at || !out.types || !in.counts || !in.at || !in.types || !has_request(tail...))
    return std::nullopt;
  // MPICH reports equal arguments of both directions as aliased buffers.
  if (out.buffer == in.buffer && out.counts == in.counts && out.types == in.types) return std::nullopt;
  if ((!out.buffer || !in.buffer) && refuses_alltoallw(*entry, out, in)) return std::nullopt;
  std::int64_t longest = 0, sum = 0;
  bool gaps = false;
  for (int rank = 0; rank < entry->size(); ++rank) {
    const std::int64_t sent = out.bytes(rank), received = in.bytes(rank);
    if (sent < 0 || received < 0 || (rank == entry->rank() && sent != received) ||
        __builtin_add_overflow(sum, sent, &sum))
      return std::nullopt;
    longest = std::max({longest, sent, received});
    if constexpr (persistent<Tail...>)
      gaps = gaps || (sent > 0 && has_gaps(out.types[rank])) || (received > 0 && has_gaps(in.types[rank]));
  }
  Route to = route_varying<Tail...>(comm, *entry, Collective::alltoall, &longest, gaps);
  if (!to) return std::nullopt;
  to.bytes = sum;
  return carry(
      to, comm, call,
      [&](StagedBlocks& staged) -> std::unique_ptr<Operation> {
        return std::make_unique<AlltoallwOperation>(out.blocks(entry->size(), Access::read, staged),
                                                    in.blocks(entry->size(), Access::written, staged),
                                                    !persistent<Tail...>);
      },
      tail...);
}

/// The collectives that move data, selected by the forms of their two directions. Between nodes MPI_Gatherv,
/// MPI_Scatterv and MPI_Alltoallv are left to the library, and on one node MPI_Igatherv and MPI_Iscatterv: members know
/// only their own sizes, so they might choose differently.
template <AtRoot only, class Out, class In, class... Tail>
std::optional<int> dispatch_moved(const char* call, const Out& out, const In& in, [[maybe_unused]] int root,
                                  MPI_Comm comm, Tail... tail) {
  if constexpr (only == AtRoot::neither && !Out::many && In::many)
    return dispatch_allgather(call, out, in, comm, tail...);
  else if constexpr (only != AtRoot::neither && (Out::has_arrays || In::has_arrays) && !blocking<Tail...> &&
                     !persistent<Tail...>)
    return std::nullopt;
  else if constexpr (only == AtRoot::in && In::has_arrays)
    return dispatch_varying_rooted<true>(call, out, in, root, comm, tail...);
  else if constexpr (only == AtRoot::out && Out::has_arrays)
    return dispatch_varying_rooted<false>(call, in, out, root, comm, tail...);
  else if constexpr (Out::has_arrays && In::has_arrays)
    return dispatch_alltoallv(call, out, in, comm, tail...);
  else if constexpr (only == AtRoot::in)
    return dispatch_rooted<true>(call, out, in, root, comm, tail...);
  else if constexpr (only == AtRoot::out)
    return dispatch_rooted<false>(call, in, out, root, comm, tail...);
  else
    return dispatch_alltoall(call, out, in, comm, tail...);
}

}  // namespace bestride::inline interpose
