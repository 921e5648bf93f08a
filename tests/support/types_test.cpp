// SPDX-License-Identifier: Apache-2.0
// Tests of the generators, without MPI.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/random_type.hpp"
#include "tests/support/relocate_type.hpp"
#include "tests/support/repetitions.hpp"
#include "tests/support/respell_type.hpp"
#include "tests/support/shrink.hpp"
#include "tests/support/type_map.hpp"

namespace bestride::test {
namespace {

constexpr std::uint64_t seeds = repetitions(20000);

TEST(RandomType, CoversEveryCombinerAndItsEdges) {
  std::set<Combiner> combiners;
  bool empty = false, negative_low = false, overlapping = false, backwards = false, large = false;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const TypeExpression type = random_type(random, random_limits(random));
    const auto facts = facts_of(type);
    ASSERT_TRUE(facts) << type.text();
    combiners.insert(type.combiner);
    empty |= facts->size == 0;
    negative_low |= facts->low < 0;
    overlapping |= facts->extent > 0 && facts->extent < facts->high - facts->low;
    backwards |= facts->extent < 0;
    large |= facts->size > (1 << 20);
  }
  EXPECT_EQ(combiners.size(), 13u);
  EXPECT_TRUE(empty && negative_low && overlapping && backwards && large);
}

TEST(RandomType, LayoutHasTheBytesOfTheTypeMap) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const TypeExpression type = random_type(random, random_limits(random));
    const auto map = type_map(type);
    if (!map) continue;
    std::vector<ByteRun> runs;
    const auto evaluated = evaluate(type);
    if (evaluated->bytes.node)
      for_each_block(*evaluated->bytes.node, evaluated->bytes.offset, [&](std::int64_t offset, std::int64_t length) {
        if (!runs.empty() && runs.back().offset + runs.back().length == offset)
          runs.back().length += length;
        else
          runs.push_back({offset, length});
        return true;
      });
    ASSERT_EQ(runs, runs_of(*map)) << "seed " << seed << ": " << type.text();
  }
}

TEST(RespellType, KeepsTypeMapAndBounds) {
  std::uint64_t changed = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const TypeExpression type = random_type(random, {});
    const TypeExpression other = respell_type(random, type);
    const auto facts = facts_of(type), other_facts = facts_of(other);
    ASSERT_TRUE(other_facts) << "seed " << seed << ": " << other.text();
    EXPECT_EQ(facts->lower, other_facts->lower) << "seed " << seed;
    EXPECT_EQ(facts->extent, other_facts->extent) << "seed " << seed;
    ASSERT_EQ(type_map(type), type_map(other)) << "seed " << seed << ": " << type.text() << "\n  " << other.text();
    changed += type == other ? 0 : 1;
  }
  EXPECT_GT(changed, seeds / 2);
}

TEST(RelocateType, KeepsTheSignatureWithoutOverlap) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const auto map = type_map(random_type(random, {}));
    const TypeExpression other = relocate_type(random, signature_of(*map));
    const auto other_map = type_map(other);
    ASSERT_TRUE(other_map) << "seed " << seed << ": " << other.text();
    ASSERT_EQ(other_map->size(), map->size()) << "seed " << seed << ": " << other.text();
    for (std::size_t i = 0; i < map->size(); ++i) ASSERT_EQ((*map)[i].type, (*other_map)[i].type) << "seed " << seed;
    const auto facts = facts_of(other);
    if (map->empty()) continue;
    ASSERT_FALSE(overlaps(runs_of(*other_map, 3, facts->extent))) << "seed " << seed << ": " << other.text();
  }
}

TEST(Shrink, FindsTheMinimalExample) {
  const TypeExpression type =
      type_from("struct([1,2,1],[0,64,512],[vector(9,3,5,double_int),contiguous(7,short_int),hvector(3,1,-100,int)])");
  const TypeExpression core =
      shrink(type, [](const TypeExpression& t) { return t.text().find("short_int") != std::string::npos; });
  EXPECT_EQ(core.text(), "short_int");
}

}  // namespace
}  // namespace bestride::test
