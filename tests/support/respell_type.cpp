// SPDX-License-Identifier: Apache-2.0
#include "tests/support/respell_type.hpp"

#include <algorithm>

#include "tests/support/type_map.hpp"

namespace bestride::test {
namespace {

/// Blocks of one element type, the common form of contiguous, vector and indexed types.
struct Blocks {
  Numbers lengths, bytes;
  std::size_t size() const { return lengths.size(); }
};

/// Longer block lists are not respelled, because a list of thousands of hindexed blocks does not test more.
constexpr std::int64_t max_blocks = 48;

/// A struct repeats its member types. Every repetition is a handle, and some MPI libraries fail with hundreds of them.
constexpr std::int64_t max_nodes = 100;

std::int64_t nodes_of(const TypeExpression& type) {
  std::int64_t nodes = 1;
  for (const TypeExpression& child : type.children) nodes += nodes_of(child);
  return nodes;
}

class Respeller {
 public:
  explicit Respeller(Random& random) : random_(random) {}

  TypeExpression spell(const TypeExpression& type) {
    TypeExpression result = with_bounds_of(type, rewrite(type));
    if (random_.chance(10)) result = dup(std::move(result));
    return result;
  }

 private:
  /// `type`, which must have the same bytes as `original`, with the bounds of `original`.
  static TypeExpression with_bounds_of(const TypeExpression& original, TypeExpression type) {
    const Facts want = *facts_of(original);
    const auto have = facts_of(type);
    if (!have) return original;
    if (have->lower == want.lower && have->extent == want.extent) return type;
    return resized(want.lower, want.extent, std::move(type));
  }

  TypeExpression rewrite(const TypeExpression& type) {
    switch (type.combiner) {
      case Combiner::named: return random_.chance(20) ? contiguous(1, type) : type;
      case Combiner::dup: return spell(type.children[0]);
      case Combiner::resized: return resized(type.integers[0], type.integers[1], spell(type.children[0]));
      case Combiner::structure: return rewrite_struct(type);
      case Combiner::subarray: return rewrite_subarray(type);
      case Combiner::darray: return flat(type);
      default: break;
    }
    const TypeExpression child = spell(type.children[0]);
    const std::int64_t extent = facts_of(child)->extent;
    const auto blocks = blocks_of(type, extent);
    if (!blocks || facts_of(child)->size == 0) {
      TypeExpression result = type;
      result.children[0] = child;
      return result;
    }
    return spell_blocks(*blocks, child, extent);
  }

  static std::optional<Blocks> blocks_of(const TypeExpression& type, std::int64_t extent) {
    Blocks blocks;
    const auto run = [&](std::int64_t count, std::int64_t length, std::int64_t stride) {
      if (count > max_blocks) return false;
      for (std::int64_t i = 0; i < count; ++i) {
        blocks.lengths.push_back(length);
        blocks.bytes.push_back(i * stride);
      }
      return true;
    };
    const bool in_elements = type.combiner == Combiner::indexed || type.combiner == Combiner::indexed_block;
    switch (type.combiner) {
      case Combiner::contiguous: run(1, type.integers[0], 0); break;
      case Combiner::vector:
      case Combiner::hvector:
        if (!run(type.integers[0], type.integers[1],
                 type.integers[2] * (type.combiner == Combiner::vector ? extent : 1)))
          return std::nullopt;
        break;
      case Combiner::indexed:
      case Combiner::hindexed: blocks = {type.a, type.b}; break;
      default: blocks = {Numbers(type.a.size(), type.integers[0]), type.a};
    }
    if (static_cast<std::int64_t>(blocks.size()) > max_blocks) return std::nullopt;
    if (in_elements)
      for (auto& byte : blocks.bytes) byte *= extent;
    return blocks;
  }

  TypeExpression spell_blocks(Blocks blocks, const TypeExpression& child, std::int64_t extent) {
    split(blocks, extent);
    insert_empty(blocks);
    if (blocks.size() >= 4 && nodes_of(child) < max_nodes && random_.chance(20)) return halves(blocks, child, extent);
    const bool uniform =
        std::adjacent_find(blocks.lengths.begin(), blocks.lengths.end(), std::not_equal_to<>()) == blocks.lengths.end();
    const bool in_elements = extent != 0 && std::all_of(blocks.bytes.begin(), blocks.bytes.end(),
                                                        [&](std::int64_t at) { return at % extent == 0; });
    Numbers elements;
    if (in_elements)
      for (const std::int64_t at : blocks.bytes) elements.push_back(at / extent);
    for (;;) switch (random_.between(0, 7)) {
        case 0: return hindexed(blocks.lengths, blocks.bytes, child);
        case 1:
          if (in_elements) return indexed(blocks.lengths, elements, child);
          break;
        case 2:
          if (uniform && blocks.size() > 0) return hindexed_block(blocks.lengths[0], blocks.bytes, child);
          break;
        case 3:
          if (uniform && in_elements && blocks.size() > 0) return indexed_block(blocks.lengths[0], elements, child);
          break;
        case 4:
          if (nodes_of(child) * static_cast<std::int64_t>(blocks.size()) <= max_nodes)
            return structure(blocks.lengths, blocks.bytes, std::vector<TypeExpression>(blocks.size(), child));
          break;
        default:
          if (const auto regular = spell_regular(blocks, uniform, child, extent)) return *regular;
      }
  }

  /// Blocks of equal length at a regular stride.
  std::optional<TypeExpression> spell_regular(const Blocks& blocks, bool uniform, const TypeExpression& child,
                                              std::int64_t extent) {
    if (!uniform || blocks.size() == 0) return std::nullopt;
    const std::int64_t count = static_cast<std::int64_t>(blocks.size()), length = blocks.lengths[0];
    const std::int64_t stride = count > 1 ? blocks.bytes[1] - blocks.bytes[0] : 0;
    for (std::size_t i = 1; i < blocks.size(); ++i)
      if (blocks.bytes[i] - blocks.bytes[i - 1] != stride) return std::nullopt;
    const std::int64_t at = blocks.bytes[0];
    const auto placed = [&](TypeExpression type) { return at == 0 ? type : hindexed_block(1, {at}, std::move(type)); };
    switch (random_.between(0, 3)) {
      case 0:
        if (extent != 0 && stride % extent == 0) return placed(vector(count, length, stride / extent, child));
        return placed(hvector(count, length, stride, child));
      case 1: return placed(contiguous(count, resized(0, stride, contiguous(length, child))));
      case 2: {  // rows of an array, if the blocks have that layout
        if (extent <= 0 || length == 0 || stride % extent != 0 || at % extent != 0) break;
        const std::int64_t row = stride / extent, start = at / extent;
        if (row < length || start < 0 || start + length > row) break;
        if (random_.chance(50)) return subarray({count, row}, {count, length}, {0, start}, false, child);
        return subarray({row, count}, {length, count}, {start, 0}, true, child);
      }
      default: break;
    }
    return placed(hvector(count, length, stride, child));
  }

  /// Splits some of the long blocks in two.
  void split(Blocks& blocks, std::int64_t extent) {
    if (!random_.chance(30)) return;
    Blocks cut;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::int64_t length = blocks.lengths[i];
      const std::int64_t first = length > 1 && random_.chance(60) ? random_.between(1, length - 1) : length;
      cut.lengths.push_back(first);
      cut.bytes.push_back(blocks.bytes[i]);
      if (first == length) continue;
      cut.lengths.push_back(length - first);
      cut.bytes.push_back(blocks.bytes[i] + first * extent);
    }
    blocks = std::move(cut);
  }

  void insert_empty(Blocks& blocks) {
    if (!random_.chance(15)) return;
    const std::ptrdiff_t at = random_.between(0, static_cast<std::int64_t>(blocks.size()));
    blocks.lengths.insert(blocks.lengths.begin() + at, 0);
    blocks.bytes.insert(blocks.bytes.begin() + at, random_.between(-64, 64));
  }

  TypeExpression halves(const Blocks& blocks, const TypeExpression& child, std::int64_t extent) {
    const std::ptrdiff_t middle = static_cast<std::ptrdiff_t>(blocks.size() / 2);
    const auto part = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
      return Blocks{Numbers(blocks.lengths.begin() + from, blocks.lengths.begin() + to),
                    Numbers(blocks.bytes.begin() + from, blocks.bytes.begin() + to)};
    };
    return structure({1, 1}, {0, 0},
                     {spell_blocks(part(0, middle), child, extent),
                      spell_blocks(part(middle, static_cast<std::ptrdiff_t>(blocks.size())), child, extent)});
  }

  TypeExpression rewrite_struct(const TypeExpression& type) {
    TypeExpression result = type;
    for (auto& child : result.children) child = spell(child);
    for (std::size_t i = 0; i < result.children.size(); ++i)
      if (random_.chance(25) && facts_of(result.children[i])->size > 0) {
        // Turns the block of this member into a separate type.
        const std::int64_t extent = facts_of(result.children[i])->extent;
        result.children[i] = spell_blocks({{result.a[i]}, {0}}, result.children[i], extent);
        result.a[i] = 1;
      }
    if (result.children.size() >= 3 && random_.chance(30)) {
      const std::ptrdiff_t middle = static_cast<std::ptrdiff_t>(result.children.size() / 2);
      const auto part = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
        return structure(Numbers(result.a.begin() + from, result.a.begin() + to),
                         Numbers(result.b.begin() + from, result.b.begin() + to),
                         std::vector<TypeExpression>(result.children.begin() + from, result.children.begin() + to));
      };
      result =
          structure({1, 1}, {0, 0}, {part(0, middle), part(middle, static_cast<std::ptrdiff_t>(type.children.size()))});
    }
    return result;
  }

  /// Nested hvectors, from the fastest dimension to the slowest.
  TypeExpression rewrite_subarray(const TypeExpression& type) {
    TypeExpression result = spell(type.children[0]);
    if (facts_of(result)->size == 0) return type;
    std::int64_t stride = facts_of(result)->extent, at = 0;
    for (std::size_t step = 0; step < type.a.size(); ++step) {
      const std::size_t d = type.fortran_order ? step : type.a.size() - 1 - step;
      result = hvector(type.b[d], 1, stride, std::move(result));
      at += type.c[d] * stride;
      stride *= type.a[d];
    }
    return at == 0 ? result : hindexed_block(1, {at}, std::move(result));
  }

  /// A struct of all leaves. Types with too many leaves stay as they are.
  TypeExpression flat(const TypeExpression& type) {
    const auto map = type_map(type, 256);
    if (!map) return type;
    TypeExpression result = structure({}, {}, {});
    for (const Leaf& leaf : *map) {
      const std::size_t n = result.a.size();
      const bool joins = n > 0 && result.children[n - 1].name == leaf.type->name &&
                         result.b[n - 1] + result.a[n - 1] * leaf.type->extent == leaf.offset;
      if (joins) {
        ++result.a[n - 1];
        continue;
      }
      result.a.push_back(1);
      result.b.push_back(leaf.offset);
      result.children.push_back(named(leaf.type->name));
    }
    return result;
  }

  Random& random_;
};

}  // namespace

TypeExpression respell_type(Random& random, const TypeExpression& type) { return Respeller(random).spell(type); }

TypeExpression respell_counted(Random& random, const TypeExpression& type, std::int64_t count) {
  return respell_type(random, contiguous(count, type));
}

}  // namespace bestride::test
