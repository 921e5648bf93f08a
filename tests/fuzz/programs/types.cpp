// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/types.hpp"

#include <algorithm>

#include "tests/support/random_type.hpp"
#include "tests/support/relocate_type.hpp"
#include "tests/support/respell_type.hpp"

namespace bestride::fuzz {
namespace {

using test::Combiner;

constexpr std::size_t max_leaves = 3000;  // of one element
constexpr std::int64_t max_runs = 60000;  // of a message

bool parts_sound(const TypeExpression& type) {
  const auto facts = test::facts_of(type);
  if (!facts || facts->size <= 0 || facts->extent <= 0) return false;
  return std::all_of(type.children.begin(), type.children.end(), parts_sound);
}

const char* simple_name(Random& random) {
  static constexpr const char* names[] = {"int",   "int",   "double", "byte",          "float",
                                          "short", "int64", "char",   "double_complex"};
  return random.pick(names);
}

/// Types that are common in applications, which large messages use.
TypeExpression common_type(Random& random, bool mixed) {
  using namespace test;
  const TypeExpression leaf = named(simple_name(random));
  const std::int64_t extent = facts_of(leaf)->extent, n = random.between(1, 20), length = random.between(1, 4);
  if (mixed) {
    if (random.chance(25)) return named(random.chance(50) ? "double_int" : "long_int");
    if (random.chance(50)) return structure({1, 1}, {0, 8}, {named("int"), named("double")});
    return resized(0, 24, structure({1, 1, 1}, {0, 8, 16}, {named("int"), named("double"), named("char")}));
  }
  switch (random.between(0, 6)) {
    case 0: return vector(n, length, length + random.between(0, 4), leaf);
    case 1: return resized(0, extent * (length + random.between(0, 3)), contiguous(length, leaf));
    case 2: return vector(n * 10, 1, 2, leaf);
    case 3: return subarray({n, 6, 5}, {n, 3, 2}, {0, 1, 2}, random.chance(50), leaf);
    case 4: return hvector(n, length, extent * (length + 1), leaf);
    case 5: return indexed_block(length, {0, length, 3 * length, 5 * length + 1}, leaf);
    default: return resized(0, 3 * extent, contiguous(1, dup(leaf)));
  }
}

}  // namespace

std::optional<Shape> Shape::of(const TypeExpression& type, std::int64_t count, std::size_t leaves) {
  const auto facts = test::facts_of(type);
  if (!facts) return std::nullopt;
  auto map = test::type_map(type, leaves);
  if (!map) return std::nullopt;
  return Shape{type, count, *facts, std::make_shared<const test::TypeMap>(std::move(*map))};
}

Runs Shape::runs(std::int64_t times) const { return test::runs_of(*map, times, facts.extent); }
std::int64_t Shape::low(std::int64_t times) const { return times == 0 ? 0 : std::min<std::int64_t>(0, facts.low); }
std::int64_t Shape::high(std::int64_t times) const {
  return times == 0 ? 0 : std::max({facts.extent * times, facts.extent * (times - 1) + facts.high, std::int64_t{0}});
}

bool sound(const TypeExpression& type, std::int64_t times) {
  if (!parts_sound(type)) return false;
  const auto shape = Shape::of(type, times);
  if (!shape || static_cast<std::int64_t>(shape->map->size()) * times > max_runs) return false;
  for (const test::Leaf& leaf : *shape->map)
    if (leaf.type->name == "packed" || leaf.type->name.starts_with("long_double")) return false;
  const bool separate = shape->facts.low >= 0 && shape->facts.high <= shape->facts.extent;
  return !test::overlaps(shape->runs(separate ? 1 : times));
}

bool uniform(const Shape& shape) {
  const auto* first = shape.map->empty() ? nullptr : shape.map->front().type;
  return std::all_of(shape.map->begin(), shape.map->end(),
                     [&](const test::Leaf& leaf) { return leaf.type == first; }) &&
         first && first->second_at == 0 && first->size <= 16;
}

std::int64_t block_bytes(Random& random, int size) {
  switch (size) {
    case 0: return random.between(1, 64);
    case 1: return random.chance(50) ? random.between(64, 4096) : random.between(1000, 12000);
    case 2: return random.between(4096, 65536);
    default: return random.between(60000, 300000);
  }
}

Shape draw_shape(Random& random, const ShapeLimits& limits) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    const bool small = limits.bytes <= 4000;
    TypeExpression type = test::named(simple_name(random));
    if (limits.types > 0 && !random.chance(20)) {
      test::TypeLimits bounds;
      bounds.depth = 4;
      bounds.bytes = std::min<std::int64_t>(limits.bytes, random.chance(50) ? 256 : 2048);
      bounds.span = 16 * bounds.bytes + 256;
      bounds.same_leaf = !small && random.chance(80);
      type = random.chance(small ? 30 : 60) ? common_type(random, small && random.chance(40))
                                            : test::random_type(random, bounds);
    }
    auto shape = Shape::of(type, 1);
    if (!shape || shape->facts.size <= 0) continue;
    if (limits.contiguous_blocks && (shape->facts.low < 0 || shape->facts.high > shape->facts.extent)) {
      shape = Shape::of(test::resized(shape->facts.low, shape->facts.high - shape->facts.low, type), 1);
      if (!shape || shape->facts.low < 0) continue;
    }
    shape->count = std::max<std::int64_t>(
        1, std::min(limits.bytes / shape->facts.size, max_runs / static_cast<std::int64_t>(shape->map->size())));
    if (!sound(shape->type, shape->count + 3)) continue;
    if (!uniform(*shape) && shape->bytes() > 4000) shape->count = std::max<std::int64_t>(1, 4000 / shape->facts.size);
    if (!uniform(*shape) && shape->bytes() > 4000) continue;
    return *shape;
  }
  return *Shape::of(test::named("int"), std::max<std::int64_t>(1, limits.bytes / 4));
}

Shape respell(Random& random, const Shape& shape, int types, bool same_count) {
  if (types < 2 || random.chance(25)) return shape;
  for (int attempt = 0; attempt < 3; ++attempt) {
    TypeExpression type;
    std::int64_t count = shape.count;
    const std::int64_t choice = random.between(0, types >= 3 ? 3 : 2);
    if (choice == 0 && !same_count && shape.count > 0 &&
        static_cast<std::int64_t>(shape.map->size()) * shape.count < static_cast<std::int64_t>(max_leaves)) {
      type = test::respell_counted(random, shape.type, shape.count);
      count = 1;
    } else if (choice == 3) {
      type = test::relocate_type(random, test::signature_of(*shape.map));
    } else {
      type = test::respell_type(random, shape.type);
    }
    if (!sound(type, count + 3)) continue;
    auto result = Shape::of(type, count);
    if (result && result->facts.low >= 0 && result->facts.high <= result->facts.extent) return *result;
    if (result && !same_count) return *result;
  }
  return shape;
}

std::optional<Shape> prefix(Random& random, const Shape& shape, std::int64_t leaves) {
  test::TypeMap map;
  for (std::int64_t i = 0; i < shape.count && leaves > 0; ++i)
    for (std::size_t k = 0; k < shape.map->size() && leaves > 0; ++k, --leaves) map.push_back((*shape.map)[k]);
  const TypeExpression type = test::relocate_type(random, test::signature_of(map));
  if (!sound(type, 1)) return std::nullopt;
  return Shape::of(type, 1);
}

}  // namespace bestride::fuzz
