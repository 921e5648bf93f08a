// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the regular part of a sequence of pieces: the shortest period p such that piece i + p has the content of piece
// i, displaced by a constant.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bestride::inline datatype {

/// Pieces 0 .. turns * period - 1 are `turns` (>= 2) copies of the first `period` pieces. The remaining pieces are an
/// incomplete copy, or there are none. turns == 0: nothing repeats.
struct Period {
  std::size_t period = 0;
  std::size_t turns = 0;
};

/// `same(i, j)`: pieces i and j have equal content. `offset(i)`: offset of piece i. Uses the failure function of Knuth,
/// Morris and Pratt over the tokens (content of i, offset(i + 1) - offset(i)): O(n).
template <class Same, class Offset>
Period find_period(std::size_t n, Same&& same, Offset&& offset) {
  if (n < 2) return {};
  // The token of the last piece has no step; it equals any token with the same content.
  const auto equal = [&](std::size_t i, std::size_t j) {
    if (!same(i, j)) return false;
    if (i + 1 >= n || j + 1 >= n) return true;
    return offset(i + 1) - offset(i) == offset(j + 1) - offset(j);
  };
  std::vector<std::uint32_t> border(n, 0);
  for (std::size_t i = 1, k = 0; i < n; ++i) {
    while (k > 0 && !equal(i, k)) k = border[k - 1];
    if (equal(i, k)) ++k;
    border[i] = static_cast<std::uint32_t>(k);
  }
  const std::size_t period = n - border[n - 1];
  if (period * 2 > n) return {};
  return {period, n / period};
}

}  // namespace bestride::inline datatype
