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

/// What a rank tells the others before an alltoall whose sizes are not known; at the beginning of its slot.
struct Sizes {
  std::int64_t longest = 0;  ///< bytes of a block
  std::int64_t filled = 0;   ///< 1: the blocks follow: for each rank, in order, the end of its block in the slot, then
                             ///< the blocks
};
constexpr std::int64_t longest_with_sizes = 4096;  ///< of a block that is sent with the sizes

}  // namespace

Task bcast(Rounds& rounds, Operand data, int root) {
  const std::int64_t most = rounds.slot_bytes();
  for (std::int64_t first = 0; first < data.bytes(); first += most) {
    const Rounds::Number round = rounds.begin();
    const Range range = turn(data.bytes(), first, most);
    if (rounds.rank() == root) {
      co_await rounds.vacant(round);
      rounds.fill(round, 0, data, range);
      rounds.publish(round);
    } else {
      co_await rounds.published(round, root);
      write(data, rounds.of(round, root), range);
    }
    rounds.end(round);
  }
}

Task allgather(Rounds& rounds, Operand own, const Operands& all, std::int64_t longest) {
  const std::int64_t most = rounds.slot_bytes();
  for (std::int64_t first = 0; first < longest; first += most) {
    const Rounds::Number round = rounds.begin();
    co_await rounds.vacant(round);
    const Range given = turn(own.bytes(), first, most);
    rounds.fill(round, 0, own, given);
    rounds.publish(round);
    // A slot that was filled past the caches is slow to read.
    if (const Operand place = all.of(rounds.rank()); place != own)
      write(place, own.at(0) ? own.at(given.first) : rounds.own(round), given);
    for (int step = 1; step < rounds.ranks(); ++step) {
      const int from = (rounds.rank() + step) % rounds.ranks();
      const Range range = turn(all.bytes(from), first, most);
      if (range.length() == 0) continue;
      co_await rounds.published(round, from);
      write(all.of(from), rounds.of(round, from), range);
    }
    rounds.end(round);
  }
}

Task gather(Rounds& rounds, Operand own, const Operands* all, int root, std::int64_t longest) {
  const std::int64_t most = rounds.slot_bytes();
  for (std::int64_t first = 0; first < longest; first += most) {
    const Rounds::Number round = rounds.begin();
    const Range given = turn(own.bytes(), first, most);
    if (rounds.rank() != root) {
      if (given.length() > 0) {
        co_await rounds.vacant(round);
        rounds.fill(round, 0, own, given);
        rounds.publish(round);
      }
    } else {
      if (own.bytes() > 0) {
        co_await rounds.vacant(round);
        move(own, all->of(root), given, rounds.own(round));
      }
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int from = (root + step) % rounds.ranks();
        const Range range = turn(all->bytes(from), first, most);
        if (range.length() == 0) continue;
        co_await rounds.published(round, from);
        write(all->of(from), rounds.of(round, from), range);
      }
    }
    rounds.end(round);
  }
}

Task scatter(Rounds& rounds, const Operands* all, Operand own, int root, std::int64_t longest) {
  const std::int64_t most = rounds.part_bytes();
  for (std::int64_t first = 0; first < longest; first += most) {
    const Rounds::Number round = rounds.begin();
    if (rounds.rank() == root) {
      co_await rounds.vacant(round);
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int to = (root + step) % rounds.ranks();
        rounds.fill(round, to * most, all->of(to), turn(all->bytes(to), first, most));
      }
      rounds.publish(round);
      if (own.bytes() > 0) move(all->of(root), own, turn(own.bytes(), first, most), rounds.own(round) + root * most);
    } else if (const Range range = turn(own.bytes(), first, most); range.length() > 0) {
      co_await rounds.published(round, root);
      write(own, rounds.of(round, root) + rounds.rank() * most, range);
    }
    rounds.end(round);
  }
}

Task alltoall(Rounds& rounds, const Operands& input, const Operands& output, std::int64_t longest) {
  const std::int64_t most = rounds.part_bytes();
  const int rank = rounds.rank();
  for (std::int64_t first = 0; first < longest; first += most) {
    const Rounds::Number round = rounds.begin();
    co_await rounds.vacant(round);
    for (int step = 1; step < rounds.ranks(); ++step) {
      const int to = (rank + step) % rounds.ranks();
      const Range range = turn(input.bytes(to), first, most);
      rounds.fill(round, to * most, input.of(to), range);
    }
    rounds.publish(round);
    if (const Range range = turn(input.bytes(rank), first, most); range.length() > 0)
      move(input.of(rank), output.of(rank), range, rounds.own(round) + rank * most);
    for (int step = 1; step < rounds.ranks(); ++step) {
      const int from = (rank + rounds.ranks() - step) % rounds.ranks();
      const Range range = turn(output.bytes(from), first, most);
      if (range.length() == 0) continue;
      co_await rounds.published(round, from);
      write(output.of(from), rounds.of(round, from) + rank * most, range);
    }
    rounds.end(round);
  }
}

Task agreed_alltoall(Rounds& rounds, const Operands& input, const Operands& output) {
  const int ranks = rounds.ranks(), rank = rounds.rank();
  const auto ends = [](auto* slot) {
    return reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(slot) + sizeof(Sizes));
  };
  Sizes sizes;
  std::int64_t sum = static_cast<std::int64_t>(sizeof sizes) + 4 * ranks;
  for (int other = 0; other < ranks; ++other) {
    const std::int64_t sent = input.bytes(other), received = output.bytes(other);
    sizes.longest = std::max({sizes.longest, sent, received});
    sum += sent;
  }
  // Short blocks are sent with the sizes. So if all are short, one round is enough.
  sizes.filled = sizes.longest <= longest_with_sizes && sum <= rounds.slot_bytes();
  const Rounds::Number round = rounds.begin();
  co_await rounds.vacant(round);
  std::byte* const own = rounds.own(round);
  std::memcpy(own, &sizes, sizeof sizes);
  if (sizes.filled) {
    std::int64_t end = static_cast<std::int64_t>(sizeof sizes) + 4 * ranks;
    for (int to = 0; to < ranks; ++to) {
      if (to != rank) {
        input.of(to).read(own + end, 0, input.bytes(to));
        end += input.bytes(to);
      }
      ends(own)[to] = static_cast<std::int32_t>(end);
    }
  }
  rounds.publish(round);
  co_await rounds.all_published(round);
  for (int from = 0; from < ranks; ++from) {
    if (from == rank) continue;
    Sizes theirs;
    std::memcpy(&theirs, rounds.of(round, from), sizeof theirs);
    sizes.longest = std::max(sizes.longest, theirs.longest);
    sizes.filled &= theirs.filled;
  }
  if (sizes.filled) {
    for (int from = 0; from < ranks; ++from) {
      const std::int64_t bytes = output.bytes(from);
      if (from == rank)
        move(input.of(rank), output.of(rank), {0, bytes}, rounds.scratch(0));
      else
        output.of(from).write(rounds.of(round, from) + ends(rounds.of(round, from))[rank] - bytes, 0, bytes);
    }
  }
  rounds.end(round);
  if (!sizes.filled) co_await alltoall(rounds, input, output, sizes.longest);
}

}  // namespace bestride::inline collectives
