// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that move data, with device memory: which bytes each of them reads and writes on this rank.
#include <mpi.h>

#include <optional>

#include "interpose/message/buffer_regions.hpp"
#include "interpose/message/shadowed_call.hpp"

namespace bestride::inline interpose {

/// The direction that is significant only at the root.
enum class AtRoot { neither, out, in };

/// Makes the call as `call(out arguments, in arguments)`, two tuples, if one of its buffers has to be staged, and
/// returns its error. nullopt: no buffer has to be staged, and the call was not made. `out`, `in`: the blocks that are
/// sent and received, of one of the types of respelled_blocks.hpp. `root`: ignored for AtRoot::neither.
template <AtRoot only, class Out, class In, class Call, class... Tail>
std::optional<int> call_with_shadowed_blocks(const char* call_name, const Out& out, const In& in, int root,
                                             MPI_Comm comm, Call call, Tail... tail) {
  const CollectiveMembers members = members_of(comm);
  if (!members.known) return std::nullopt;
  const bool sends = only == AtRoot::neither || (only == AtRoot::out ? members.is_root(root) : members.has_part(root));
  const bool receives =
      only == AtRoot::neither || (only == AtRoot::in ? members.is_root(root) : members.has_part(root));
  const bool in_place = out.buffer == MPI_IN_PLACE;
  BufferRegion from{out.buffer}, to{in.buffer};
  if (sends && !in_place) from = region_of(out, members.peers, BufferUse::read);
  if (receives && in.buffer != MPI_IN_PLACE) {
    // With MPI_IN_PLACE the rank's own block is already in the receive buffer; in an alltoall, all blocks are.
    constexpr bool all_to_all = Out::many && In::many;
    to = region_of(in, members.peers, in_place && all_to_all ? BufferUse::both : BufferUse::written,
                   in_place && !all_to_all ? members.rank : -1);
  }
  return call_with_shadows(
      call_name, from, to, comm,
      [&](const void* send_buffer, void* receive_buffer) {
        Out staged_out = out;
        In staged_in = in;
        staged_out.buffer = send_buffer;
        staged_in.buffer = receive_buffer;
        return call(staged_out.arguments(), staged_in.arguments());
      },
      tail...);
}

/// MPI_Alltoallw and its variants, as `call(send buffer, receive buffer)`.
template <class Count, class Displacement, class Call, class... Tail>
std::optional<int> call_with_shadowed_types(const char* call_name, const void* send_buffer, const Count* send_counts,
                                            const Displacement* send_at, const MPI_Datatype* send_types,
                                            void* receive_buffer, const Count* receive_counts,
                                            const Displacement* receive_at, const MPI_Datatype* receive_types,
                                            MPI_Comm comm, Call call, Tail... tail) {
  const CollectiveMembers members = members_of(comm);
  if (!members.known) return std::nullopt;
  const bool in_place = send_buffer == MPI_IN_PLACE;
  BufferRegion from{send_buffer};
  if (!in_place) from = region_of(send_buffer, send_counts, send_at, send_types, members.peers, BufferUse::read);
  const BufferRegion to = region_of(receive_buffer, receive_counts, receive_at, receive_types, members.peers,
                                    in_place ? BufferUse::both : BufferUse::written);
  return call_with_shadows(call_name, from, to, comm, call, tail...);
}

}  // namespace bestride::inline interpose
