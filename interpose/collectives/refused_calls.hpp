// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that the MPI library refuses for this rank's arguments before it communicates. The other members do not
// notice such a call, and the program may continue with MPI_ERRORS_RETURN. So it must not count among the blocking
// collectives of the communicator, of which all members count equally many, and this rank must not wait in it.
//
// A call that is carried out in shared memory has passed the checks of its dispatch function, which are at least as
// strict. The functions below are for calls that are left to the library. Their rules are those of MPICH, each
// tried out (tests/transparency/refused.cpp). Of a library without these checks no call counts as refused.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/core/lanes.hpp"
#include "interpose/message/respelled_blocks.hpp"
#include "interpose/message/shadowed_collective.hpp"
#include "interpose/objects/comm_registry.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"
#include "perfmodel/collective/shape.hpp"

namespace bestride::inline interpose {

namespace dispatch_detail {

/// The elements of the block of one rank, as a range from the beginning of the buffer.
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

/// True if the same elements in the same place are sent and received. The library reports this as an error: MPICH
/// compares just these values and, for types without gaps, bytes of `element`. Any other call must not be left to the
/// library, because the other members don't see the difference.
template <class One, class All>
bool same_place(const One& one, const All& all, std::int64_t element, int rank) noexcept {
  const Range block = block_elements(all, rank);
  return one.type == all.type && one.count > 0 &&
         (All::has_arrays ? block.length() > 0 : one.count == block.length()) &&
         one.buffer == static_cast<const std::byte*>(static_cast<const void*>(all.buffer)) + block.first * element;
}

/// True if elements of this derived type, of which each has some bytes, begin at the address of the buffer.
bool begins_at_buffer(MPI_Datatype type) noexcept;
/// The library reports a null pointer as an invalid buffer, except for types of absolute addresses.
inline bool no_buffer(const void* buffer, MPI_Datatype type) noexcept {
  return !buffer && (predefined(type) || begins_at_buffer(type));
}
/// The same where the library does not take MPI_IN_PLACE either.
inline bool no_place(const void* buffer, MPI_Datatype type) noexcept {
  return buffer == MPI_IN_PLACE || no_buffer(buffer, type);
}

// Whether something is wrong with arguments.

bool wrong_type(MPI_Datatype type) noexcept;
/// Of a buffer for some elements, or none. `in_place`: MPI_IN_PLACE is an error.
inline bool wrong_elements(const void* buffer, MPI_Datatype type, bool any, bool in_place) noexcept {
  return wrong_type(type) || (any && ((in_place && buffer == MPI_IN_PLACE) || no_buffer(buffer, type)));
}
inline bool wrong_root(const CommEntry& entry, int root) noexcept { return root < 0 || root >= entry.size(); }

/// Of the blocks of one direction that is significant on this rank.
template <class Given>
bool wrong_blocks(const Given& given, [[maybe_unused]] int ranks) noexcept {
  bool any = false;
  if constexpr (Given::has_arrays) {
    if (!given.counts || !given.at) return false;  // MPICH reads them
    for (int rank = 0; rank < ranks; ++rank) {
      if (given.counts[rank] < 0) return true;
      any = any || given.counts[rank] > 0;
    }
  } else {
    if (given.count < 0) return true;
    any = given.count > 0;
  }
  return wrong_elements(given.buffer, given.type, any, true);
}

/// Of two directions that are both significant on this rank.
template <class Out, class In>
bool aliased(const Out& out, const In& in, int rank) noexcept {
  if (out.buffer == MPI_IN_PLACE || in.buffer == MPI_IN_PLACE || out.type != in.type) return false;
  if constexpr (Out::many && In::many) {
    if constexpr (Out::has_arrays)
      return out.buffer == in.buffer && out.counts == in.counts;
    else
      return out.buffer == in.buffer && out.count == in.count && out.count > 0;
  } else if constexpr (Out::many) {
    return aliased(in, out, rank);
  } else {
    if constexpr (In::has_arrays)
      if (!in.counts || !in.at) return false;
    return same_place(out, in, runtime().types.size_of(in.type), rank);
  }
}

/// Of a collective that moves data.
template <AtRoot only, class Out, class In>
bool wrong_moved(const CommEntry& entry, const Out& out, const In& in, int root) noexcept {
  const bool at_root = only != AtRoot::neither && entry.rank() == root;
  const bool sends = (only != AtRoot::out || at_root) && !(only != AtRoot::out && out.buffer == MPI_IN_PLACE);
  const bool receives = (only != AtRoot::in || at_root) && !(only == AtRoot::out && in.buffer == MPI_IN_PLACE);
  return (only != AtRoot::neither && wrong_root(entry, root)) || (sends && wrong_blocks(out, entry.size())) ||
         (receives && wrong_blocks(in, entry.size())) || (sends && receives && aliased(out, in, entry.rank()));
}

/// One direction of an MPI_Alltoallw.
template <class Given>
bool wrong_typed(const CommEntry& entry, const Given& given) noexcept {
  if (!given.counts || !given.at || !given.types) return false;
  for (int rank = 0; rank < entry.size(); ++rank)
    if (given.counts[rank] < 0 ||
        (given.counts[rank] > 0 && (given.buffer == MPI_IN_PLACE || wrong_type(given.types[rank]))))
      return true;
  // Only if it is not the first block may a null pointer be the base of absolute displacements.
  return given.counts[0] > 0 && given.counts[entry.rank()] > 0 && no_buffer(given.buffer, given.types[0]);
}

/// True if the library looks at arguments before it communicates.
bool library_checks() noexcept;

}  // namespace dispatch_detail

// For calls on an intra-communicator of two ranks or more.

inline bool refuses_bcast(const CommEntry& entry, const void* buffer, std::int64_t count, MPI_Datatype type,
                          int root) noexcept {
  using namespace dispatch_detail;
  // MPICH does not look at the type of no elements.
  return (wrong_root(entry, root) || count < 0 || (count > 0 && wrong_elements(buffer, type, true, false))) &&
         library_checks();
}

/// MPI_Gather, MPI_Scatter, MPI_Allgather, MPI_Alltoall, and with varying blocks.
template <AtRoot only, class Out, class In>
bool refuses_moved(const CommEntry& entry, const Out& out, const In& in, int root) noexcept {
  using namespace dispatch_detail;
  return wrong_moved<only>(entry, out, in, root) && library_checks();
}

/// MPI_Alltoallw. `Out`, `In`: buffer, counts, at, types.
template <class Out, class In>
bool refuses_alltoallw(const CommEntry& entry, const Out& out, const In& in) noexcept {
  using namespace dispatch_detail;
  const bool same = out.buffer == in.buffer && out.counts == in.counts && out.types == in.types;
  return ((out.buffer != MPI_IN_PLACE && (wrong_typed(entry, out) || same)) || wrong_typed(entry, in)) &&
         library_checks();
}

/// What a rank passes to a reduction.
struct ReductionArguments {
  const void *send, *receive;
  std::int64_t operands;  ///< elements that it gives; negative: a count is negative
  std::int64_t results;   ///< elements that it gets if it is not the root of another rank
  MPI_Datatype type;
  MPI_Op op;
};
/// MPI_Allreduce and MPI_Reduce_scatter(_block).
bool refuses_reduction(const ReductionArguments& given) noexcept;
/// MPI_Reduce.
bool refuses_reduction(const CommEntry& entry, const ReductionArguments& given, int root) noexcept;
/// The arguments of MPI_Reduce_scatter; `counts` is not null.
template <class Count>
ReductionArguments scattered_reduction(const CommEntry& entry, const void* send, const void* receive,
                                       const Count* counts, MPI_Datatype type, MPI_Op op) noexcept {
  std::int64_t operands = 0;
  for (int rank = 0; rank < entry.size(); ++rank) {
    if (counts[rank] < 0) return {send, receive, -1, -1, type, op};
    operands |= std::int64_t{counts[rank]};  // whether there are any
  }
  return {send, receive, operands, counts[entry.rank()], type, op};
}

}  // namespace bestride::inline interpose
