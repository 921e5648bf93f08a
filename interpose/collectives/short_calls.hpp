// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short blocking collectives of contiguous data on one node, without an Operation
// (collectives/one_node/short_calls.hpp).
#include <mpi.h>

#include <optional>

#include "collectives/one_node/short_calls.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/message/respelled_blocks.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

/// The bytes of a buffer, if elements of its type are contiguous, or there are none.
struct PlainData {
  std::byte* data = nullptr;
  bool known = false;
  explicit operator bool() const noexcept { return known; }
};
inline PlainData plain_data(const void* buffer, MPI_Datatype type, std::int64_t bytes) noexcept {
  std::byte* const data = static_cast<std::byte*>(const_cast<void*>(buffer));
  if (predefined(type) || bytes == 0) [[likely]]
    return {data, true};
  TypeEntry* const entry = runtime().types.find(type);
  if (!entry || entry->decoded_state() != TypeEntry::State::contiguous) return {};
  return {data + entry->element().offset(), true};
}

/// Blocks of elements of `element` bytes that are contiguous, from `at` on.
template <class Buffer, class Count>
EqualBlocksOfBytes blocks_at(const PlainData& at, const EqualBlocks<Buffer, Count>& given,
                             std::int64_t element) noexcept {
  return {at.data, given.count * element};
}
template <class Buffer, class Count, class Place>
VaryingBlocksOfBytes<Count, Place> blocks_at(const PlainData& at, const VaryingBlocks<Buffer, Count, Place>& given,
                                             std::int64_t element) noexcept {
  return {at.data, given.counts, given.at, element};
}

/// The memory through which a call with messages of at most `bytes` bytes to each other rank may go in one round;
/// nullptr: the call needs an Operation. `parts`: the messages to different ranks differ, so each has a part of the
/// slot.
inline Rounds* at_once(OneNode* node, std::int64_t bytes, bool parts) noexcept {
  if (!node || reporting() || gpu_runtime_detected()) return nullptr;
  Rounds& rounds = node->rounds();
  return is_short(rounds, bytes, parts) ? &rounds : nullptr;
}

/// The memory through which a reduction of `bytes` bytes of `type` may go in one round; nullptr: it needs an Operation,
/// for example because the type is not predefined.
inline Rounds* at_once(OneNode* node, std::int64_t bytes, MPI_Datatype type) noexcept {
  Rounds* const rounds = at_once(node, bytes, false);
  return rounds && bytes <= longest_in_one_round(*rounds) && predefined(type) ? rounds : nullptr;
}

/// Carries out a call by body(wait). Returns its error; no value: another member has left it.
template <class Body>
std::optional<int> carry_out_at_once(OneNode& node, MPI_Comm comm, Body body) noexcept {
  Rounds& rounds = node.rounds();
  body([&rounds](auto condition) { wait_on_one_node(rounds, condition); });
  return node.end_at_once(comm);
}

}  // namespace bestride::inline interpose
