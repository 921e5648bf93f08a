// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short collectives of contiguous data, one round each, without a coroutine: a task, its operation and the description
// of its blocks take 0.1 to 0.2 us, as long as the whole call.
//
// To other ranks a call looks the same as one carried out by a task (data_movement.hpp, reductions.hpp), so each rank
// chooses for itself. The message of this rank fits into one slot; those of others, if they are longer, which is an
// error of the program, are cut off. A rank without data waits for nobody and reports nothing, as in MPICH 4.0.2.
//
// `wait(condition)` returns when the condition holds; it is called again until then, and not once it has held. All
// pointers are to contiguous bytes, which do not overlap.
#include <cstddef>
#include <cstdint>

#include "base/copy.hpp"
#include "collectives/one_node/reductions.hpp"
#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

namespace short_calls_detail {

template <class Wait>
void take(Rounds& rounds, Rounds::Number round, std::int64_t bytes, Wait& wait) noexcept {
  if (!rounds.take(round, bytes)) [[unlikely]]
    wait([&] { return rounds.take(round, bytes); });
}
/// Returns what rounds.told() does.
template <class Wait>
std::int64_t told(Rounds& rounds, Rounds::Number round, int from, Wait& wait) noexcept {
  if (!rounds.is_published(round, from)) wait([&] { return rounds.is_published(round, from); });
  return rounds.told(round, from);
}
inline void copy_block(std::byte* to, const std::byte* from, std::int64_t bytes) noexcept {
  if (bytes > 0 && to != from) copy_bytes(to, from, static_cast<std::size_t>(bytes));
}
inline void fill(Rounds& rounds, Rounds::Number round, std::int64_t at, const std::byte* from,
                 std::int64_t bytes) noexcept {
  if (bytes < SlotStores::least_bytes)
    copy_block(rounds.own(round) + at, from, bytes);
  else
    rounds.fill(round, at, Operand(const_cast<std::byte*>(from), bytes), {0, bytes});
}
/// The blocks of all other ranks, from their slots.
template <class Blocks, class Wait>
void receive_blocks(Rounds& rounds, Rounds::Number round, const Blocks& all, Wait& wait) noexcept {
  for (int step = 1; step < rounds.ranks(); ++step) {
    const int from = (rounds.rank() + step) % rounds.ranks();
    if (all.bytes(from) == 0) continue;
    const std::int64_t sent = told(rounds, round, from, wait);
    if (sent < 0) return;
    copy_block(all.at(from), rounds.of(round, from), rounds.fit(sent, all.bytes(from)));
  }
}
constexpr std::int64_t part_stride(std::int64_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

}  // namespace short_calls_detail

/// The blocks of all ranks, one after the other.
struct EqualBlocksOfBytes {
  std::byte* data;
  std::int64_t block;
  std::byte* at(int rank) const noexcept { return data + rank * block; }
  std::int64_t bytes(int) const noexcept { return block; }
};

/// The blocks of all ranks, each of counts[rank] elements, places[rank] elements after `data`.
template <class Count, class Place>
struct VaryingBlocksOfBytes {
  std::byte* data;
  const Count* counts;
  const Place* places;
  std::int64_t element;  ///< bytes
  std::byte* at(int rank) const noexcept { return data + std::int64_t{places[rank]} * element; }
  std::int64_t bytes(int rank) const noexcept { return std::int64_t{counts[rank]} * element; }
};

/// True if messages of at most `bytes` bytes to each other rank may be sent by the functions below. `parts`: each rank
/// gets another message.
inline bool is_short(const Rounds& rounds, std::int64_t bytes, bool parts) noexcept {
  constexpr std::int64_t most = 16 * 1024;
  return bytes <= most && bytes <= (parts ? rounds.part_bytes() : rounds.slot_bytes());
}

template <class Wait>
void short_bcast(Rounds& rounds, std::byte* data, std::int64_t bytes, int root, Wait wait) noexcept {
  using namespace short_calls_detail;
  const Rounds::Number round = rounds.begin(RoundKind::bcast);
  if (rounds.rank() == root) {
    take(rounds, round, bytes, wait);
    fill(rounds, round, 0, data, bytes);
    rounds.publish(round, bytes);
  } else if (bytes > 0) {
    const std::int64_t sent = told(rounds, round, root, wait);
    if (sent < 0) return;
    if (sent < bytes) rounds.note(CallOutcome::differs);
    copy_block(data, rounds.of(round, root), rounds.fit(sent, bytes));
  }
}

/// `own`: this rank's block, of `bytes` bytes. `all`: the blocks of all ranks; this rank's place may be `own`.
template <class Blocks, class Wait>
void short_allgather(Rounds& rounds, const std::byte* own, std::int64_t bytes, const Blocks& all, Wait wait) noexcept {
  using namespace short_calls_detail;
  const int rank = rounds.rank();
  const Rounds::Number round = rounds.begin(RoundKind::allgather);
  take(rounds, round, bytes, wait);
  fill(rounds, round, 0, own, bytes);
  rounds.publish(round, bytes);
  copy_block(all.at(rank), own, rounds.fit(bytes, all.bytes(rank)));
  receive_blocks(rounds, round, all, wait);
}

/// `own`: this rank's block, of `bytes` bytes. `all`: the blocks of all ranks, used on the root only.
template <class Blocks, class Wait>
void short_gather(Rounds& rounds, const std::byte* own, std::int64_t bytes, const Blocks& all, int root,
                  Wait wait) noexcept {
  using namespace short_calls_detail;
  const Rounds::Number round = rounds.begin(RoundKind::gather);
  if (rounds.rank() != root) {
    take(rounds, round, bytes, wait);
    fill(rounds, round, 0, own, bytes);
    rounds.publish(round, bytes);
    return;
  }
  copy_block(all.at(root), own, rounds.fit(bytes, all.bytes(root)));
  receive_blocks(rounds, round, all, wait);
}

/// `all`: used on the root; its longest block has `longest` bytes. `own`: receives this rank's, of at most `bytes`
/// bytes; on the root it may be its place in `all`.
template <class Blocks, class Wait>
void short_scatter(Rounds& rounds, const Blocks& all, std::int64_t longest, std::byte* own, std::int64_t bytes,
                   int root, Wait wait) noexcept {
  using namespace short_calls_detail;
  const Rounds::Number round = rounds.begin(RoundKind::scatter);
  if (rounds.rank() != root) {
    const std::int64_t sent = bytes > 0 ? told(rounds, round, root, wait) : -1;
    if (sent >= 0) copy_block(own, rounds.part_of(round, root), rounds.fit(sent, bytes));
    return;
  }
  const std::int64_t stride = part_stride(longest);
  take(rounds, round, rounds.parts(stride, all), wait);
  for (int step = 1; step < rounds.ranks(); ++step) {
    const int to = (root + step) % rounds.ranks();
    fill(rounds, round, to * stride, all.at(to), all.bytes(to));
  }
  rounds.publish_parts(round, all);
  copy_block(own, all.at(root), rounds.fit(all.bytes(root), bytes));
}

/// `sent`, `received`: a block for each rank. `longest`: bytes of the longest that is sent.
template <class Sent, class Received, class Wait>
void short_alltoall(Rounds& rounds, const Sent& sent, std::int64_t longest, const Received& received,
                    Wait wait) noexcept {
  using namespace short_calls_detail;
  const int rank = rounds.rank();
  const Rounds::Number round = rounds.begin(RoundKind::alltoall);
  const std::int64_t stride = part_stride(longest);
  take(rounds, round, rounds.parts(stride, sent), wait);
  for (int step = 1; step < rounds.ranks(); ++step) {
    const int to = (rank + step) % rounds.ranks();
    fill(rounds, round, to * stride, sent.at(to), sent.bytes(to));
  }
  rounds.publish_parts(round, sent);
  copy_block(received.at(rank), sent.at(rank), rounds.fit(sent.bytes(rank), received.bytes(rank)));
  for (int step = 1; step < rounds.ranks(); ++step) {
    const int from = (rank + rounds.ranks() - step) % rounds.ranks();
    if (received.bytes(from) == 0) continue;
    const std::int64_t theirs = told(rounds, round, from, wait);
    if (theirs < 0) return;
    copy_block(received.at(from), rounds.part_of(round, from), rounds.fit(theirs, received.bytes(from)));
  }
}

/// `root` < 0: an allreduce. `input` may be `output`. `bytes`: at most longest_in_one_round().
template <class Wait>
void short_reduce(Rounds& rounds, const std::byte* input, std::byte* output, std::int64_t bytes, int root,
                  const Reduction& reduction, Wait wait) noexcept {
  using namespace short_calls_detail;
  const Rounds::Number round = rounds.begin(root < 0 ? RoundKind::allreduce : RoundKind::reduce);
  take(rounds, round, bytes, wait);
  copy_block(rounds.own(round), input, bytes);
  rounds.publish(round, bytes);
  if (bytes == 0 || (root >= 0 && root != rounds.rank())) return;
  for (int from = 0; from < rounds.ranks(); ++from)
    if (from != rounds.rank() && told(rounds, round, from, wait) < 0) return;
  reduce_one_round(rounds, round, Operand(output, bytes), reduction);
}

}  // namespace bestride::inline collectives
