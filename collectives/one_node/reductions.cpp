// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/reductions.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy.hpp"
#include "collectives/core/lanes.hpp"

namespace bestride::inline collectives {
namespace {

/// Up to this size every rank that needs the result reduces all of it. Twice the work for 2 ranks, but one round
/// instead of two, which takes 0.1 to 0.5 us.
constexpr std::int64_t whole_bytes = 2 * 1024;

std::int64_t down_to(std::int64_t bytes, std::int64_t unit) noexcept { return bytes / unit * unit; }

/// The contributions of all ranks in one round, `at` bytes from the beginning of their slots.
struct Contributions {
  Rounds& rounds;
  Rounds::Number round;
  const Reduction& reduction;
  std::int64_t at;

  const std::byte* of(int rank) const noexcept { return rounds.of(round, rank) + at; }

  /// Reduces the ranks [first, last) in the order of the tree. `level`: the first free scratch strip.
  void tree(int first, int last, std::byte* out, std::int64_t bytes, int level) const noexcept {
    if (last - first == 1) {
      copy_bytes(out, of(first), static_cast<std::size_t>(bytes));
      return;
    }
    const int cut = reduction.tree.cut(first, last);
    tree(cut, last, out, bytes, level);
    if (cut - first == 1) return reduction.combine(of(first), out, bytes);
    std::byte* lower = rounds.scratch(level);
    tree(first, cut, lower, bytes, level + 1);
    reduction.combine(lower, out, bytes);
  }

  /// `bytes`: at most a strip, a multiple of an element.
  void strip(std::byte* out, std::int64_t bytes) const noexcept {
    if (reduction.tree.ordered()) return tree(0, rounds.ranks(), out, bytes, 1);
    copy_bytes(out, of(rounds.ranks() - 1), static_cast<std::size_t>(bytes));
    for (int rank = rounds.ranks() - 2; rank >= 0; --rank) reduction.combine(of(rank), out, bytes);
  }
};

/// Reduces bytes [first, last) of the slots. consume(part, data) gets the result in strips; data is valid during the
/// call. place(part): the destination of a strip, or nullptr for scratch memory.
template <class Place, class Consume>
void reduce_slots(Rounds& rounds, Rounds::Number round, const Reduction& reduction, Range range, Place place,
                  Consume consume) noexcept {
  const std::int64_t most = down_to(Rounds::strip_bytes, reduction.element_bytes);
  for (std::int64_t at = range.first; at < range.last; at += most) {
    const Range part{at, std::min(range.last, at + most)};
    std::byte* out = place(part);
    if (!out) out = rounds.scratch(0);
    Contributions{rounds, round, reduction, at}.strip(out, part.length());
    consume(part, out);
  }
}
std::byte* nowhere(Range) noexcept { return nullptr; }

/// Writes a contribution of `bytes` bytes, from `first` on, to this rank's slot. Only this rank reads its own part
/// again.
void give(Rounds& rounds, Rounds::Number round, const Operand& input, std::int64_t first, std::int64_t bytes,
          Range own) noexcept {
  rounds.fill(round, 0, input, {first, first + own.first});
  input.read(rounds.own(round) + own.first, first + own.first, first + own.last);
  rounds.fill(round, own.last, input, {first + own.last, first + bytes});
}

/// After all ranks have published a round: the bytes that all of them give. -1: a rank has left the call. Notes
/// `longer` if another rank gives more than this one, `shorter` if it gives fewer: what MPICH 4.0.2 reports.
std::int64_t common_bytes(Rounds& rounds, Rounds::Number round, std::int64_t own,
                          CallOutcome longer = CallOutcome::truncated,
                          CallOutcome shorter = CallOutcome::complete) noexcept {
  std::int64_t least = own;
  for (int rank = 0; rank < rounds.ranks(); ++rank) {
    if (rank == rounds.rank()) continue;
    const std::int64_t theirs = rounds.told(round, rank);
    if (theirs < 0) return -1;
    if (theirs != own) rounds.note(theirs > own ? longer : shorter);
    least = std::min(least, theirs);
  }
  return least;
}

/// After that: the first `bytes` bytes.
void reduce_whole(Rounds& rounds, Rounds::Number round, const Operand& output, std::int64_t bytes,
                  const Reduction& reduction) noexcept {
  reduce_slots(rounds, round, reduction, {0, down_to(bytes, reduction.element_bytes)}, nowhere,
               [&](Range part, const std::byte* data) { output.write(data, part.first, part.last); });
}

/// `root` < 0: all ranks get the result.
Task reduce_to(Rounds& rounds, Operand input, Operand output, int root, const Reduction& reduction) {
  const RoundKind kind = root < 0 ? RoundKind::allreduce : RoundKind::reduce;
  const std::int64_t element = reduction.element_bytes, own_bytes = input.bytes();
  const bool receives = root < 0 || root == rounds.rank(), others_receive = root != rounds.rank();
  const std::int64_t whole = longest_in_one_round(rounds);
  if (own_bytes <= whole) {
    const Rounds::Number round = rounds.begin(kind);
    co_await rounds.taken(round, own_bytes);
    input.read(rounds.own(round), 0, own_bytes);
    rounds.publish(round, own_bytes);
    if (receives && own_bytes > 0) {
      co_await rounds.all_published(round);
      reduce_one_round(rounds, round, output, reduction);
    }
    co_return;
  }
  const std::int64_t most = down_to(rounds.slot_bytes(), element);
  for (std::int64_t first = 0, common = own_bytes; first < common; first += most) {
    const Rounds::Number given = rounds.begin(kind), result = rounds.begin(kind);
    const std::int64_t bytes_given = std::min(most, own_bytes - first);
    co_await rounds.taken(given, bytes_given);
    give(rounds, given, input, first, bytes_given, part_of(bytes_given, rounds.ranks(), rounds.rank(), element));
    rounds.publish(given, own_bytes);
    co_await rounds.all_published(given);
    if (first == 0) {
      // Of a long reduce, MPICH 4.0.2 gathers the parts, and rank 0 finds any difference.
      const bool finds_all = root >= 0 && rounds.rank() == 0;
      common = finds_all ? common_bytes(rounds, given, own_bytes, CallOutcome::differs, CallOutcome::differs)
                         : common_bytes(rounds, given, own_bytes);
      if (common < 0) co_return;
      // A rank that gives so few bytes does not take part in another round.
      if (common <= whole) {
        if (receives) reduce_whole(rounds, given, output, common, reduction);
        co_return;
      }
    }
    const std::int64_t bytes = std::min(most, common - first);
    const Range own = part_of(bytes, rounds.ranks(), rounds.rank(), element);
    co_await rounds.taken(result, bytes);
    reduce_slots(
        rounds, given, reduction, own,
        [&](Range part) { return others_receive ? rounds.place_in(result, part) : nullptr; },
        [&](Range part, const std::byte* data) {
          if (others_receive) rounds.keep(result, part, data);
          if (receives) output.write(data, first + part.first, first + part.last);
        });
    rounds.publish(result, bytes);
    rounds.end(given);
    if (receives)
      for (int step = 1; step < rounds.ranks(); ++step) {
        const int from = (rounds.rank() + step) % rounds.ranks();
        const Range part = part_of(bytes, rounds.ranks(), from, element);
        if (part.length() == 0) continue;
        co_await rounds.published(result, from);
        if (rounds.told(result, from) < 0) co_return;
        output.write(rounds.of(result, from) + part.first, first + part.first, first + part.last);
      }
    if (first + most < common) rounds.end(result);
  }
}

}  // namespace

std::int64_t longest_in_one_round(const Rounds& rounds) noexcept { return std::min(whole_bytes, rounds.slot_bytes()); }

void reduce_one_round(Rounds& rounds, Rounds::Number round, const Operand& output,
                      const Reduction& reduction) noexcept {
  if (const std::int64_t common = common_bytes(rounds, round, output.bytes()); common >= 0)
    reduce_whole(rounds, round, output, common, reduction);
}

Task allreduce(Rounds& rounds, Operand input, Operand output, const Reduction& reduction) {
  return reduce_to(rounds, input, output, -1, reduction);
}

Task reduce(Rounds& rounds, Operand input, Operand output, int root, const Reduction& reduction) {
  return reduce_to(rounds, input, output, root, reduction);
}

Task reduce_scatter(Rounds& rounds, const Operands& input, Operand output, const Reduction& reduction) {
  const std::int64_t most = down_to(rounds.part_bytes(), reduction.element_bytes);
  std::int64_t longest = 0;
  std::uint64_t mixed = 0;  // of the bytes of all blocks; published in place of a length
  for (int rank = 0; rank < rounds.ranks(); ++rank) {
    longest = std::max(longest, input.bytes(rank));
    mixed = (mixed + static_cast<std::uint64_t>(input.bytes(rank))) * 0x9E3779B97F4A7C15;
  }
  const auto lengths = static_cast<std::int64_t>(mixed >> 26);
  bool matches = true;
  for (std::int64_t first = 0; first == 0 || first < longest; first += most) {
    const Rounds::Number round = rounds.begin(RoundKind::reduce_scatter);
    const std::int64_t stride = (std::clamp<std::int64_t>(longest - first, 0, most) + 15) / 16 * 16;
    co_await rounds.taken(round, stride * rounds.ranks());
    for (int to = 0; to < rounds.ranks(); ++to) {
      const Range range{std::min(first, input.bytes(to)), std::min(first + most, input.bytes(to))};
      if (to == rounds.rank())
        input.of(to).read(rounds.own(round) + to * stride, range.first, range.last);
      else
        rounds.fill(round, to * stride, input.of(to), range);
    }
    rounds.publish(round, lengths);
    const std::int64_t bytes = std::min(most, output.bytes() - first), at = rounds.rank() * stride;
    if (bytes > 0 && matches) {
      co_await rounds.all_published(round);
      if (first == 0) {
        const std::int64_t common = common_bytes(rounds, round, lengths, CallOutcome::truncated, CallOutcome::differs);
        if (common < 0) co_return;
        // Others may give fewer rounds than this rank would wait for. Its own may still be waited for.
        matches = rounds.outcome() == CallOutcome::complete;
      }
      if (matches)
        reduce_slots(rounds, round, reduction, {at, at + bytes}, nowhere, [&](Range part, const std::byte* data) {
          output.write(data, first + part.first - at, first + part.last - at);
        });
    }
    if (first + most < longest) rounds.end(round);
  }
}

}  // namespace bestride::inline collectives
