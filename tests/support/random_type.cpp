// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_type.hpp"

#include <algorithm>
#include <cstdlib>

#include "datatype/named.hpp"

namespace bestride::test {
namespace {

class Generator {
 public:
  Generator(Random& random, const TypeLimits& limits) : random_(random), limits_(limits) {
    leaf_ = random_.pick(named_types()).name;
  }

  TypeExpression type(int depth) {
    TypeExpression result = leaf();
    for (int level = 0; level < depth; ++level) {
      if (random_.chance(20) && level > 0) break;
      // A type that exceeds a limit is discarded, and smaller ones are tried before this level is skipped.
      for (int attempt = 0; attempt < 3; ++attempt) {
        TypeExpression larger = wrap(result, depth - level - 1, attempt);
        if (fits(larger)) {
          result = std::move(larger);
          break;
        }
      }
    }
    return result;
  }

 private:
  bool fits(const TypeExpression& type) const {
    const auto facts = facts_of(type);
    if (!facts || facts->size > limits_.bytes) return false;
    const std::int64_t low = std::min({facts->low, facts->lower, facts->lower + facts->extent});
    const std::int64_t high = std::max({facts->high, facts->lower, facts->lower + facts->extent});
    return high - low <= limits_.span && low >= -limits_.span && high <= 2 * limits_.span;
  }

  TypeExpression leaf() {
    if (limits_.same_leaf) return named(leaf_);
    // Half of the time a common type, so that equal neighbors occur.
    static constexpr std::string_view common[] = {"byte", "char", "int", "float", "double"};
    return named(random_.chance(50) ? random_.pick(common) : random_.pick(named_types()).name);
  }

  std::int64_t count(int attempt) {
    static constexpr std::int64_t small[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 33, 64, 65};
    if (attempt == 0 && random_.chance(15)) return random_.between(1, std::max<std::int64_t>(1, limits_.bytes / 4));
    return attempt == 2 ? random_.between(0, 3) : random_.pick(small);
  }

  /// Near the size of one block, so that blocks touch, overlap, leave gaps or have a negative stride.
  std::int64_t stride(std::int64_t block) {
    switch (random_.between(0, 9)) {
      case 0: return block;
      case 1: return -block;
      case 2: return block * 2;
      case 3: return random_.chance(30) ? 0 : block + 1;
      case 4: return block + random_.between(1, 16);
      case 5: return -block - random_.between(0, 16);
      case 6: return random_.between(-100, 100);
      case 7: return block + 8 * random_.between(0, 64);
      case 8: return random_.chance(50) ? 1 : block / 2;
      default: return random_.between(0, 4096);
    }
  }

  Numbers lengths(std::size_t n) {
    Numbers values(n);
    const bool uniform = random_.chance(40);
    const std::int64_t one = random_.between(0, 5);
    for (auto& value : values) value = uniform ? one : random_.chance(15) ? 0 : random_.between(1, 5);
    return values;
  }

  /// Displacements: usually ascending without overlap, otherwise regular, shuffled or arbitrary.
  Numbers displacements(const Numbers& block_lengths, std::int64_t unit) {
    Numbers at(block_lengths.size());
    const std::int64_t gap = random_.between(0, 3) * unit;
    const int way = static_cast<int>(random_.between(0, 4));
    std::int64_t next = random_.chance(50) ? 0 : random_.between(-20, 20) * unit;
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = way == 4 ? random_.between(-64, 64) * unit : next;
      next += block_lengths[i] * unit + (way == 0 ? gap : random_.between(0, 3) * unit);
      if (way == 1 && unit == 1) next += random_.between(0, 2);
    }
    if (way == 3)
      for (std::size_t i = at.size(); i > 1; --i)
        std::swap(at[i - 1], at[static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(i) - 1))]);
    return at;
  }

  static Numbers times(Numbers values, std::int64_t factor) {
    for (auto& value : values) value *= factor;
    return values;
  }

  std::size_t list_length(int attempt) {
    return static_cast<std::size_t>(attempt == 0 && random_.chance(5) ? random_.between(20, 300)
                                                                      : random_.between(0, attempt == 2 ? 3 : 9));
  }

  TypeExpression wrap(const TypeExpression& child, int depth, int attempt) {
    const Facts facts = *facts_of(child);
    const std::int64_t extent = facts.extent;
    const std::int64_t reach = std::max<std::int64_t>(1, std::abs(extent));
    switch (random_.between(1, 12)) {
      case 1: return contiguous(count(attempt), child);
      case 2: {
        const std::int64_t length = random_.chance(50) ? 1 : count(2);
        return vector(count(attempt), length, stride(length), child);
      }
      case 3: {
        const std::int64_t length = random_.chance(50) ? 1 : count(2);
        return hvector(count(attempt), length, stride(length * reach), child);
      }
      case 4: {
        const Numbers lengths_list = lengths(list_length(attempt));
        return indexed(lengths_list, displacements(lengths_list, 1), child);
      }
      case 5: {
        const Numbers lengths_list = lengths(list_length(attempt));
        Numbers at = times(displacements(lengths_list, 1), reach);
        if (random_.chance(30))
          for (auto& value : at) value += random_.between(0, 7);
        return hindexed(lengths_list, at, child);
      }
      case 6: {
        const Numbers at = displacements(Numbers(list_length(attempt), 1), 1);
        const std::int64_t length = random_.between(0, 4);
        return indexed_block(length, times(at, std::max<std::int64_t>(1, length)), child);
      }
      case 7: {
        const Numbers at = displacements(Numbers(list_length(attempt), 1), 1);
        const std::int64_t length = random_.between(0, 4);
        return hindexed_block(
            length, times(at, std::max<std::int64_t>(1, length) * reach + (random_.chance(20) ? 1 : 0)), child);
      }
      case 8: return make_struct(child, depth, attempt);
      case 9: return make_subarray(child, attempt);
      case 10: return make_darray(child, attempt);
      case 11: return make_resized(child, facts);
      default: return dup(child);
    }
  }

  TypeExpression make_struct(const TypeExpression& child, int depth, int attempt) {
    const std::size_t members = static_cast<std::size_t>(random_.between(1, attempt == 2 ? 2 : 5));
    const std::size_t place = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(members) - 1));
    TypeExpression result = structure({}, {}, {});
    std::int64_t next = random_.chance(70) ? 0 : random_.between(-40, 40);
    for (std::size_t i = 0; i < members; ++i) {
      result.children.push_back(i == place ? child : type(std::min(depth, 2)));
      const Facts facts = *facts_of(result.children.back());
      const std::int64_t length = random_.chance(10) ? 0 : random_.chance(60) ? 1 : random_.between(1, 4);
      result.a.push_back(length);
      result.b.push_back(random_.chance(10) ? random_.between(-200, 200) : next - std::min<std::int64_t>(0, facts.low));
      next = result.b.back() + std::max(facts.high, facts.extent * length) +
             (random_.chance(50) ? 0 : random_.between(0, 9));
    }
    return result;
  }

  TypeExpression make_subarray(const TypeExpression& child, int attempt) {
    const std::size_t dimensions = static_cast<std::size_t>(random_.between(1, 4));
    TypeExpression result = subarray({}, {}, {}, random_.chance(50), child);
    for (std::size_t d = 0; d < dimensions; ++d) {
      const std::int64_t size =
          attempt == 0 && random_.chance(10) ? random_.between(1, 200) : random_.between(1, attempt == 2 ? 3 : 8);
      result.a.push_back(size);
      result.b.push_back(random_.chance(25) ? size : random_.between(1, size));
      result.c.push_back(random_.between(0, size - result.b.back()));
    }
    return result;
  }

  TypeExpression make_darray(const TypeExpression& child, int attempt) {
    const std::size_t dimensions = static_cast<std::size_t>(random_.between(1, 3));
    TypeExpression result = make(Combiner::darray, {}, {}, {}, {child});
    result.fortran_order = random_.chance(50);
    std::int64_t processes = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const std::int64_t size = random_.between(1, attempt == 2 ? 3 : 12);
      const auto distribution = static_cast<Distribution>(random_.between(0, 2));
      const std::int64_t along = distribution == Distribution::none ? 1 : random_.between(1, 4);
      std::int64_t argument = TypeExpression::default_argument;
      if (distribution == Distribution::block && random_.chance(50))
        argument = (size + along - 1) / along + random_.between(0, 2);
      if (distribution == Distribution::cyclic && random_.chance(70)) argument = random_.between(1, 4);
      result.a.push_back(size);
      result.distributions.push_back(distribution);
      result.b.push_back(argument);
      result.c.push_back(along);
      processes *= along;
    }
    result.integers = {processes, random_.between(0, processes - 1)};
    return result;
  }

  TypeExpression make_resized(const TypeExpression& child, const Facts& facts) {
    const std::int64_t touched = facts.high - facts.low;
    switch (random_.between(0, 6)) {
      case 0: return resized(facts.low, touched, child);
      case 1: return resized(0, std::max<std::int64_t>(1, touched / 2), child);  // elements overlap
      case 2: return resized(random_.between(-32, 32), facts.extent + random_.between(0, 64), child);
      case 3: return resized(facts.lower, (touched + 63) / 64 * 64, child);
      case 4: return resized(0, random_.between(0, 8), child);
      case 5: return resized(facts.low, -touched, child);
      default: return resized(facts.lower, facts.extent, child);
    }
  }

  Random& random_;
  TypeLimits limits_;
  std::string_view leaf_;
};

}  // namespace

TypeExpression random_type(Random& random, const TypeLimits& limits) {
  return Generator(random, limits).type(static_cast<int>(random.between(0, limits.depth)));
}

TypeLimits random_limits(Random& random) {
  TypeLimits limits;
  limits.depth = random.chance(5) ? 12 : 5;
  const std::int64_t dice = random.between(0, 99);
  if (dice == 0) {
    limits.bytes = std::int64_t{4} << 20;
    limits.span = std::int64_t{16} << 20;
  } else if (dice < 13) {
    limits.bytes = 65536;
  }
  return limits;
}

}  // namespace bestride::test
