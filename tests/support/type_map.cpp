// SPDX-License-Identifier: Apache-2.0
#include "tests/support/type_map.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bestride::test {

TypeExpression type_from(std::string_view text) {
  auto parsed = parse_type(text);
  if (!parsed) {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(text.size()), text.data(), parsed.error().text.c_str());
    std::abort();
  }
  return std::move(*parsed);
}

namespace {

struct Expansion {
  std::size_t limit;
  bool too_long = false;

  void repeat(TypeMap& map, const TypeMap& child, std::int64_t at, std::int64_t length, std::int64_t extent) {
    for (std::int64_t i = 0; i < length && !child.empty() && !too_long; ++i) {
      too_long = map.size() + child.size() > limit;
      if (too_long) return;
      for (const Leaf& leaf : child) map.push_back({leaf.type, at + i * extent + leaf.offset});
    }
  }

  static std::int64_t extent_of(const TypeExpression& type) { return evaluate(type)->extent; }

  /// Indices of dimension d that belong to `place`, ascending.
  static Numbers owned(const TypeExpression& type, std::size_t d, std::int64_t place) {
    const std::int64_t size = type.a[d], processes = type.c[d];
    std::int64_t block = type.b[d];
    const bool by_default = block == TypeExpression::default_argument;
    if (type.distributions[d] == Distribution::none) block = size;
    if (type.distributions[d] == Distribution::block && by_default) block = (size + processes - 1) / processes;
    if (type.distributions[d] == Distribution::cyclic && by_default) block = 1;
    Numbers mine;
    for (std::int64_t i = 0; i < size; ++i)
      if (i / block % processes == place) mine.push_back(i);
    return mine;
  }

  /// Every combination of the indices of the dimensions, the fastest dimension innermost.
  void grid(TypeMap& map, const TypeMap& child, const TypeExpression& type, const std::vector<Numbers>& indices,
            std::int64_t extent) {
    const std::size_t dimensions = indices.size();
    std::vector<std::size_t> order(dimensions);  // slowest first
    for (std::size_t i = 0; i < dimensions; ++i) order[i] = type.fortran_order ? dimensions - 1 - i : i;
    std::vector<std::size_t> at(dimensions, 0);
    for (const Numbers& list : indices)
      if (list.empty()) return;
    while (!too_long) {
      std::int64_t element = 0;
      for (const std::size_t d : order) element = element * type.a[d] + indices[d][at[d]];
      repeat(map, child, element * extent, 1, extent);
      std::size_t i = dimensions;
      while (i > 0 && ++at[order[i - 1]] == indices[order[i - 1]].size()) at[order[--i]] = 0;
      if (i == 0) return;
    }
  }

  TypeMap expand(const TypeExpression& type) {
    TypeMap map;
    if (type.combiner == Combiner::named) return {{find_named_type(type.name), 0}};
    if (type.combiner == Combiner::structure) {
      for (std::size_t i = 0; i < type.children.size(); ++i)
        repeat(map, expand(type.children[i]), type.b[i], type.a[i], extent_of(type.children[i]));
      return map;
    }
    const TypeMap child = expand(type.children[0]);
    const std::int64_t extent = extent_of(type.children[0]);
    switch (type.combiner) {
      case Combiner::contiguous: repeat(map, child, 0, type.integers[0], extent); break;
      case Combiner::vector:
      case Combiner::hvector:
        for (std::int64_t i = 0; i < type.integers[0] && !too_long && type.integers[1] > 0 && !child.empty(); ++i)
          repeat(map, child, i * type.integers[2] * (type.combiner == Combiner::vector ? extent : 1), type.integers[1],
                 extent);
        break;
      case Combiner::indexed:
      case Combiner::hindexed:
        for (std::size_t i = 0; i < type.a.size(); ++i)
          repeat(map, child, type.b[i] * (type.combiner == Combiner::indexed ? extent : 1), type.a[i], extent);
        break;
      case Combiner::indexed_block:
      case Combiner::hindexed_block:
        for (const std::int64_t at : type.a)
          repeat(map, child, at * (type.combiner == Combiner::indexed_block ? extent : 1), type.integers[0], extent);
        break;
      case Combiner::subarray: {
        std::vector<Numbers> indices(type.a.size());
        for (std::size_t d = 0; d < indices.size(); ++d)
          for (std::int64_t i = 0; i < type.b[d]; ++i) indices[d].push_back(type.c[d] + i);
        grid(map, child, type, indices, extent);
        break;
      }
      case Combiner::darray: {
        std::vector<Numbers> indices(type.a.size());
        std::int64_t rank = type.integers[1];
        for (std::size_t d = indices.size(); d-- > 0; rank /= type.c[d]) indices[d] = owned(type, d, rank % type.c[d]);
        grid(map, child, type, indices, extent);
        break;
      }
      default: return child;  // resized, dup: the bytes do not change
    }
    return map;
  }
};

}  // namespace

std::optional<TypeMap> type_map(const TypeExpression& type, std::size_t limit) {
  if (!evaluate(type)) return std::nullopt;
  Expansion expansion{limit};
  TypeMap map = expansion.expand(type);
  if (expansion.too_long) return std::nullopt;
  return map;
}

std::vector<ByteRun> runs_of(const TypeMap& map, std::int64_t count, std::int64_t extent) {
  std::vector<ByteRun> runs;
  const auto add = [&](std::int64_t offset, std::int64_t length) {
    if (!runs.empty() && runs.back().offset + runs.back().length == offset)
      runs.back().length += length;
    else
      runs.push_back({offset, length});
  };
  for (std::int64_t i = 0; i < count; ++i)
    for (const Leaf& leaf : map) {
      add(leaf.offset + i * extent, leaf.type->first);
      if (leaf.type->second_at != 0)
        add(leaf.offset + i * extent + leaf.type->second_at, leaf.type->size - leaf.type->first);
    }
  return runs;
}

std::vector<ByteRun> runs_of(const TypeMap& map) { return runs_of(map, 1, 0); }

bool overlaps(std::vector<ByteRun> runs) {
  std::sort(runs.begin(), runs.end(), [](const ByteRun& x, const ByteRun& y) { return x.offset < y.offset; });
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].offset < runs[i - 1].offset + runs[i - 1].length) return true;
  return false;
}

std::vector<SignatureRun> signature_of(const TypeMap& map) {
  std::vector<SignatureRun> signature;
  for (const Leaf& leaf : map) {
    if (signature.empty() || signature.back().type != leaf.type) signature.push_back({leaf.type, 0});
    ++signature.back().count;
  }
  return signature;
}

}  // namespace bestride::test
