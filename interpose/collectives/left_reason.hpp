// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that are left to the MPI library, in the report: how many bytes, how long, and why (docs/report.md).
//
// The reason is found out again, after the decision and only for a report, so the decision itself stays short.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "interpose/collectives/neighbor_edges.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/message/respelled_blocks.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/runtime.hpp"
#include "perfmodel/collective/shape.hpp"

namespace bestride::inline interpose {

/// A call that was left to the library. `bytes`: the bytes of CollectiveShape; no value if each member knows only its
/// own sizes.
struct LeftCollective {
  MPI_Comm comm;
  Collective what;
  std::optional<std::int64_t> bytes;
  bool blocking;
  bool in_place = false;  ///< an alltoall with MPI_IN_PLACE: always left
};

/// Why the call was left, as a static string (docs/report.md). The second form is for reductions.
const char* left_reason(const LeftCollective& left) noexcept;
const char* left_reason(const LeftCollective& left, MPI_Op op, MPI_Datatype type) noexcept;
/// Why a neighbor collective that moves some bytes was left, as a static string.
const char* left_neighbor_reason(MPI_Comm comm, NeighborForm form, bool blocking) noexcept;

/// What the report says of a call that was left. `bytes`: 0 if there is nothing to move.
struct LeftCall {
  std::int64_t bytes;
  const char* reason;
};

/// Carries out a call and, if there is a report and the call is not nested, records it as left to the library.
/// describe(): a LeftCall, asked only for a report. Returns the error of the call.
template <class Call, class Describe>
int call_and_record(const char* call_name, const Call& call, const Describe& describe) {
  if (!reporting() || in_library_call) [[likely]]
    return call();
  const LeftCall left = describe();
  const Stopwatch watch(true);
  const int error = call();
  record_left(call_name, left.bytes > 0 ? left.reason : "nothing to move", left.bytes, watch.seconds());
  return error;
}

/// Bytes of `count` elements; 0: none, or not known.
inline std::int64_t bytes_of(std::int64_t count, MPI_Datatype type) noexcept {
  std::int64_t bytes = 0;
  return count > 0 && !__builtin_mul_overflow(count, runtime().types.size_of(type), &bytes) ? bytes : 0;
}
/// Bytes of all blocks of one direction. `blocks`: how many there are.
template <class Buffer, class Count>
std::int64_t bytes_of(const OneBlock<Buffer, Count>& given, int) noexcept {
  return bytes_of(std::int64_t{given.count}, given.type);
}
template <class Buffer, class Count>
std::int64_t bytes_of(const EqualBlocks<Buffer, Count>& given, int blocks) noexcept {
  return blocks * bytes_of(std::int64_t{given.count}, given.type);
}
template <class Buffer, class Count, class At>
std::int64_t bytes_of(const VaryingBlocks<Buffer, Count, At>& given, int blocks) noexcept {
  std::int64_t count = 0;
  for (int i = 0; given.counts && i < blocks; ++i) count += given.counts[i];
  return bytes_of(count, given.type);
}

}  // namespace bestride::inline interpose
