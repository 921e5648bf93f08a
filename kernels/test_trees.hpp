// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random layouts for the tests of this folder: generated as trees of loops, sequences and lists, from a seed, with
// bounded sizes.
#include <cstdint>
#include <random>
#include <vector>

#include "datatype/build.hpp"

namespace bestride::test {

class Trees {
 public:
  explicit Trees(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  /// A layout of at most approximately `limit` packed bytes; never empty.
  LayoutPtr draw(std::int64_t limit) {
    for (;;) {
      const Built built = tree(static_cast<int>(between(0, 4)), limit);
      if (built && built->node && built->node->size <= limit && span(*built->node) <= 64 * limit) return intern(*built);
    }
  }

  static std::int64_t span(const Node& node) { return node.high - node.low; }

 private:
  static constexpr std::int64_t widths[] = {1,  2,  3,  4,  4,  5,  7,  8,  8,  8,   11,  12,  16,  16,  17,  24,
                                            31, 32, 33, 40, 48, 63, 64, 65, 96, 100, 127, 128, 130, 256, 300, 520};

  std::int64_t width() { return widths[between(0, std::size(widths) - 1)]; }

  Built tree(int depth, std::int64_t limit) {
    if (depth == 0 || limit < 8)
      return make_block(between(-40, 40), std::min(width(), std::max<std::int64_t>(limit, 1)));
    switch (between(0, 5)) {
      case 0: return sequence(depth, limit);
      case 1: return blocks(limit);
      case 2: return transpose(limit);
      case 3: return record(limit);
      default: return loop(depth, limit);
    }
  }

  Built loop(int depth, std::int64_t limit) {
    const Built body = tree(depth - 1, limit / 3);
    if (!body || !body->node) return body;
    const std::int64_t extent = span(*body->node);
    std::int64_t stride = extent + between(0, 3) * between(0, 40);
    if (chance(0.3)) stride = 2 * extent;
    if (chance(0.15)) stride = -stride;
    if (chance(0.1)) stride = between(-extent, extent);  // iterations overlap
    if (chance(0.1) && extent < 500) stride = chance(0.5) ? 512 : 1024;
    return make_repeat(
        *body, between(1, std::max<std::int64_t>(1, std::min<std::int64_t>(limit / body->node->size, 70))), stride);
  }

  Built sequence(int depth, std::int64_t limit) {
    std::vector<Placed> parts;
    std::int64_t at = between(-100, 100);
    for (std::int64_t i = between(2, 5); i > 0; --i) {
      const Built part = tree(depth - 1, limit / 5);
      if (!part || !part->node) continue;
      parts.push_back({at - part->node->low, part->node});
      at += span(*part->node) + between(0, 30);
      if (chance(0.1)) at -= between(0, 60);
    }
    return make_sequence(parts);
  }

  Built blocks(std::int64_t limit) {
    std::vector<std::int64_t> offsets, lengths;
    const bool uniform = chance(0.6);
    const std::int64_t fixed = width();
    std::int64_t left = limit / 2;
    for (std::int64_t i = between(2, 60); i > 0 && left > 0; --i) {
      lengths.push_back(uniform ? fixed : chance(0.8) ? between(1, 40) : between(1, 400));
      left -= lengths.back();
      // Mostly disjoint and out of order, sometimes overlapping.
      offsets.push_back(chance(0.95) ? between(0, 60) * 450 + between(0, 40) : between(0, 2000));
    }
    return make_blocks(offsets, lengths);
  }

  Built transpose(std::int64_t limit) {
    const std::int64_t w = chance(0.7) ? std::int64_t{1} << between(0, 5) : between(1, 70);
    const std::int64_t rows = between(2, 40);
    const std::int64_t count = std::max<std::int64_t>(2, std::min<std::int64_t>(between(2, 40), limit / (rows * w)));
    std::int64_t stride = rows * w + between(0, 100);
    if (chance(0.2)) stride = -stride;
    if (chance(0.1)) stride = between(0, rows * w);
    const Built inner = make_repeat(*make_block(0, w), count, stride);
    return make_repeat(*inner, rows, w);
  }

  Built record(std::int64_t limit) {
    std::vector<Placed> fields;
    std::int64_t at = 0;
    while (at < 60 && fields.size() < 6) {
      const std::int64_t size = between(1, std::min<std::int64_t>(24, 64 - at));
      fields.push_back(*make_block(at, size));
      at += size + between(1, 12);
      if (chance(0.3)) break;
    }
    const Built one = make_sequence(fields);
    if (!one || !one->node) return one;
    std::int64_t stride = one->node->high + between(0, 40);
    if (chance(0.1)) stride = -stride;
    if (chance(0.1)) stride = between(1, one->node->high);
    return make_repeat(*one, between(1, std::max<std::int64_t>(1, std::min<std::int64_t>(limit / one->node->size, 80))),
                       stride);
  }

  std::mt19937_64 random_;
};

}  // namespace bestride::test
