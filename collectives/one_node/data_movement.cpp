// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/data_movement.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/lanes.hpp"

namespace bestride::inline collectives {
namespace {

/// The part of a block of `bytes` bytes that is moved in the round that begins at `first`.
Range turn(std::int64_t bytes, std::int64_t first, std::int64_t most) noexcept {
  return {std::min(bytes, first), std::min(bytes, first + most)};
}
void read(const Operand& from, std::byte* to, Range range) noexcept { from.read(to, range.first, range.last); }
void write(const Operand& to, const std::byte* from, Range range) noexcept { to.write(from, range.first, range.last); }

/// Copies between two buffers of this rank. `between`: memory for `range`, used if neither is contiguous; no other rank
/// may read it, because a kernel may write a byte more than once.
void move(const Operand& from, const Operand& to, Range range, std::byte* between) noexcept {
  if (range.length() == 0 || from == to) return;
  if (const std::byte* data = from.at(range.first)) return write(to, data, range);
  if (std::byte* place = to.at(range.first)) return read(from, place, range);
  read(from, between, range);
  write(to, between, range);
}

/// The messages from all ranks to this one, in a call in which it reads the slots of all.
class Incoming {
 public:
  explicit Incoming(const Rounds& rounds) noexcept { std::fill_n(bytes_, rounds.ranks(), -1); }
  /// Whether that rank publishes the round that begins at `first`. All ranks publish the first one.
  bool expects(int from, std::int64_t first) const noexcept { return first == 0 || first < bytes_[from]; }
  /// After that rank has published a round. `room`: bytes of the block for its message. False: it has left the call.
  bool learn(Rounds& rounds, Rounds::Number round, int from, std::int64_t room) noexcept {
    if (bytes_[from] >= 0) return rounds.told(round, from) >= 0;
    bytes_[from] = rounds.told(round, from);
    if (bytes_[from] < 0) return false;
    fits_[from] = rounds.fit(bytes_[from], room);
    longest_ = std::max(longest_, bytes_[from]);
    return true;
  }
  /// The part that is moved in that round.
  Range part(int from, std::int64_t first, std::int64_t most) const noexcept { return turn(fits_[from], first, most); }
  std::int64_t longest() const noexcept { return longest_; }

 private:
  std::int64_t bytes_[RoundsShape::max_ranks], fits_[RoundsShape::max_ranks];
  std::int64_t longest_ = 0;
};

std::int64_t longest_of(const Operands& blocks, int ranks) noexcept {
  std::int64_t longest = 0;
  for (int rank = 0; rank < ranks; ++rank) longest = std::max(longest, blocks.bytes(rank));
  return longest;
}

/// Bytes from one part of a slot to the next, in the round that begins at `first`. `longest`: bytes of a block.
std::int64_t stride_of(std::int64_t longest, std::int64_t first, std::int64_t most) noexcept {
  return (turn(longest, first, most).length() + 15) / 16 * 16;
}

}  // namespace

Task bcast(Rounds& rounds, Operand data, int root) {
  const std::int64_t most = rounds.slot_bytes();
  std::int64_t bytes = data.bytes(), fits = bytes;
  for (std::int64_t first = 0; first == 0 || first < bytes; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::bcast);
    if (rounds.rank() == root) {
      const Range given = turn(bytes, first, most);
      co_await rounds.taken(round, given.length());
      rounds.fill(round, 0, data, given);
      rounds.publish(round, bytes);
    } else {
      co_await rounds.published(round, root);
      bytes = rounds.told(round, root);
      if (bytes < 0) co_return;
      if (first == 0) {
        fits = rounds.fit(bytes, data.bytes());
        if (bytes < data.bytes()) rounds.note(CallOutcome::differs);
      }
      write(data, rounds.of(round, root), turn(fits, first, most));
    }
    if (first + most < bytes) rounds.end(round);
  }
}

Task allgather(Rounds& rounds, Operand own, const Operands& all) {
  const std::int64_t most = rounds.slot_bytes();
  const int rank = rounds.rank();
  Incoming incoming(rounds);
  for (std::int64_t first = 0, longest = own.bytes(); first == 0 || first < longest; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::allgather);
    if (first == 0 || first < own.bytes()) {
      const Range given = turn(own.bytes(), first, most);
      co_await rounds.taken(round, given.length());
      rounds.fill(round, 0, own, given);
      rounds.publish(round, own.bytes());
      // A slot that was filled past the caches is slow to read.
      if (const Operand place = all.of(rank); place != own)
        write(place, own.at(0) ? own.at(given.first) : rounds.own(round),
              turn(rounds.fit(own.bytes(), place.bytes()), first, most));
    }
    for (int step = 1; step < rounds.ranks(); ++step) {
      const int from = (rank + step) % rounds.ranks();
      if (!incoming.expects(from, first)) continue;
      co_await rounds.published(round, from);
      if (!incoming.learn(rounds, round, from, all.bytes(from))) co_return;
      write(all.of(from), rounds.of(round, from), incoming.part(from, first, most));
    }
    longest = std::max(longest, incoming.longest());
    if (first + most < longest) rounds.end(round);
  }
}

Task gather(Rounds& rounds, Operand own, const Operands* all, int root) {
  const std::int64_t most = rounds.slot_bytes();
  Incoming incoming(rounds);
  for (std::int64_t first = 0, longest = own.bytes(); first == 0 || first < longest; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::gather);
    if (rounds.rank() != root) {
      const Range given = turn(own.bytes(), first, most);
      co_await rounds.taken(round, given.length());
      rounds.fill(round, 0, own, given);
      rounds.publish(round, own.bytes());
    } else {
      if (first < own.bytes()) {
        const Operand place = all->of(root);
        const Range moved = turn(rounds.fit(own.bytes(), place.bytes()), first, most);
        co_await rounds.taken(round, moved.length());
        move(own, place, moved, rounds.own(round));
      }
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int from = (root + step) % rounds.ranks();
        if (!incoming.expects(from, first)) continue;
        co_await rounds.published(round, from);
        if (!incoming.learn(rounds, round, from, all->bytes(from))) co_return;
        write(all->of(from), rounds.of(round, from), incoming.part(from, first, most));
      }
      longest = std::max(longest, incoming.longest());
    }
    if (first + most < longest) rounds.end(round);
  }
}

Task scatter(Rounds& rounds, const Operands* all, Operand own, int root) {
  const std::int64_t most = rounds.part_bytes();
  const bool at_root = rounds.rank() == root;
  std::int64_t bytes = at_root ? longest_of(*all, rounds.ranks()) : 0, fits = 0;
  for (std::int64_t first = 0; first == 0 || first < bytes; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::scatter);
    if (at_root) {
      const std::int64_t stride = stride_of(bytes, first, most);
      co_await rounds.taken(round, rounds.parts(stride, *all));
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int to = (root + step) % rounds.ranks();
        rounds.fill(round, to * stride, all->of(to), turn(all->bytes(to), first, most));
      }
      rounds.publish_parts(round, *all);
      if (const std::int64_t moved = rounds.fit(all->bytes(root), own.bytes()); first < moved)
        move(all->of(root), own, turn(moved, first, most), rounds.own(round) + root * stride);
    } else {
      co_await rounds.published(round, root);
      bytes = rounds.told(round, root);
      if (bytes < 0) co_return;
      if (first == 0) fits = rounds.fit(bytes, own.bytes());
      write(own, rounds.part_of(round, root), turn(fits, first, most));
    }
    if (first + most < bytes) rounds.end(round);
  }
}

Task alltoall(Rounds& rounds, const Operands& input, const Operands& output) {
  const std::int64_t most = rounds.part_bytes();
  const int rank = rounds.rank();
  const std::int64_t longest_sent = longest_of(input, rounds.ranks());
  Incoming incoming(rounds);
  for (std::int64_t first = 0, longest = longest_sent; first == 0 || first < longest; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::alltoall);
    if (first == 0 || first < longest_sent) {
      const std::int64_t stride = stride_of(longest_sent, first, most);
      co_await rounds.taken(round, rounds.parts(stride, input));
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int to = (rank + step) % rounds.ranks();
        rounds.fill(round, to * stride, input.of(to), turn(input.bytes(to), first, most));
      }
      rounds.publish_parts(round, input);
      if (const std::int64_t moved = rounds.fit(input.bytes(rank), output.bytes(rank)); first < moved)
        move(input.of(rank), output.of(rank), turn(moved, first, most), rounds.own(round) + rank * stride);
    }
    for (int step = 1; step < rounds.ranks(); ++step) {
      const int from = (rank + rounds.ranks() - step) % rounds.ranks();
      if (!incoming.expects(from, first)) continue;
      co_await rounds.published(round, from);
      if (!incoming.learn(rounds, round, from, output.bytes(from))) co_return;
      write(output.of(from), rounds.part_of(round, from), incoming.part(from, first, most));
    }
    longest = std::max(longest, incoming.longest());
    if (first + most < longest) rounds.end(round);
  }
}

}  // namespace bestride::inline collectives
