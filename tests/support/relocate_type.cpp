// SPDX-License-Identifier: Apache-2.0
#include "tests/support/relocate_type.hpp"

#include <algorithm>

namespace bestride::test {
namespace {

/// `count` elements of one predefined type that do not overlap.
TypeExpression spread(Random& random, const SignatureRun& run) {
  const TypeExpression leaf = named(run.type->name);
  const std::int64_t extent = run.type->extent, count = run.count;
  std::int64_t factor = 1;
  for (const std::int64_t candidate : {2, 3, 4, 5, 7, 8, 16})
    if (count % candidate == 0 && random.chance(50)) factor = candidate;
  switch (random.between(0, 6)) {
    case 0: return contiguous(count, leaf);
    case 1: return vector(count, 1, random.between(1, 4), leaf);
    case 2: return vector(count / factor, factor, factor + random.between(0, 3), leaf);
    case 3: return hvector(count / factor, factor, -factor * extent - random.between(0, 9), leaf);
    case 4: return contiguous(factor, vector(count / factor, 1, 2, leaf));
    case 5: {
      Numbers lengths, at;
      std::int64_t left = count, next = random.between(-8, 8);
      while (left > 0 && lengths.size() < 40) {
        lengths.push_back(std::min(left, random.between(1, std::max<std::int64_t>(1, left / 2))));
        at.push_back(next);
        left -= lengths.back();
        next += lengths.back() + random.between(0, 3);
      }
      if (left > 0) lengths.back() += left;
      return indexed(lengths, at, leaf);
    }
    default: {  // transposed: element i of column j
      const std::int64_t rows = count / factor;
      return hvector(factor, 1, extent, vector(rows, 1, factor, leaf));
    }
  }
}

}  // namespace

TypeExpression relocate_type(Random& random, const std::vector<SignatureRun>& signature) {
  TypeExpression all = structure({}, {}, {});
  std::int64_t above = random.chance(50) ? 0 : random.between(-100, 100), below = above;
  for (const SignatureRun& run : signature) {
    TypeExpression part = spread(random, run);
    const Facts facts = *facts_of(part);
    const std::int64_t gap = random.chance(40) ? 0 : random.between(1, 20);
    if (random.chance(70)) {
      all.b.push_back(above + gap - facts.low);
      above += gap + facts.high - facts.low;
    } else {
      all.b.push_back(below - gap - facts.high);
      below -= gap + facts.high - facts.low;
    }
    all.a.push_back(1);
    all.children.push_back(std::move(part));
  }
  const std::int64_t span = above - below;
  if (random.chance(25)) return resized(below, -span - random.between(0, 16), std::move(all));
  return resized(random.chance(50) ? below : 0, span + random.between(0, 64), std::move(all));
}

}  // namespace bestride::test
