// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of all ranks whose sum shows the order in which they are added: in another order, the sum has other bits with
// a probability of 0.08 or more, up to 128 ranks, even if only two neighbors have changed places.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace bestride::inline collectives {

namespace order_probe_detail {

inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// In each block of `size` consecutive ranks, one has a large number and another one its negative. What is added to one
/// of the two before they cancel is lost, so the sum tells where in the tree the others are. They have small integers,
/// which are added without rounding errors, so that every block affects the result.
template <class Number>
Number in_block(std::uint64_t of_all, std::uint64_t own, int rank, int ranks, int size) noexcept {
  // A block's integers add up to less than half the distance between `large` and the next number.
  constexpr auto large = static_cast<Number>(std::uint64_t{1} << std::min(std::numeric_limits<Number>::digits + 8, 63));
  const int first = rank / size * size, members = std::min(size, ranks - first), place = rank - first;
  const std::uint64_t places = mixed(of_all + static_cast<std::uint64_t>(first));
  if (members > 1) {
    const auto in = static_cast<unsigned>(members);
    const auto positive = static_cast<unsigned>(places % in),
               negative = (positive + 1 + static_cast<unsigned>((places >> 32) % (in - 1))) % in;
    if (place == static_cast<int>(positive)) return large;
    if (place == static_cast<int>(negative)) return -large;
  }
  return static_cast<Number>(1 + own % (size > 64 ? 1 : 3));
}

}  // namespace order_probe_detail

/// Fills in what `rank` of `ranks` (2 or more) contributes to `count` sums. Other numbers for each `trial`.
template <class Number>
void fill_order_probe(Number* numbers, std::int64_t count, int rank, int ranks, int trial) noexcept {
  using namespace order_probe_detail;
  const auto sizes =
      static_cast<unsigned>(std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(ranks) - 1)) - 1));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t of_all = mixed((static_cast<std::uint64_t>(trial) << 40) + static_cast<std::uint64_t>(i) + 1);
    const std::uint64_t own = mixed(of_all + static_cast<std::uint64_t>(rank) + 1);
    // One of four sums is of random numbers of all bits of the mantissa.
    numbers[i] = of_all & 3 ? in_block<Number>(of_all, own, rank, ranks, 4 << (of_all >> 2) % sizes)
                            : static_cast<Number>(static_cast<std::int64_t>(own)) /
                                  static_cast<Number>(std::uint64_t{1} << (40 + (own & 7)));
  }
}

}  // namespace bestride::inline collectives
