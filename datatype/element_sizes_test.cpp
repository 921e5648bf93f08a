// SPDX-License-Identifier: Apache-2.0
#include "datatype/element_sizes.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

using namespace bestride;

namespace {

TEST(ElementSizes, OneBasicType) {
  const ElementSizes doubles = ElementSizes::basic(8);
  EXPECT_EQ(doubles.begin_before(0), 0);
  EXPECT_EQ(doubles.begin_before(7), 0);
  EXPECT_EQ(doubles.begin_before(8192), 8192);
  EXPECT_EQ(doubles.begin_before(8199), 8192);
}

TEST(ElementSizes, NoBytes) {
  ElementSizes sizes = ElementSizes::basic(0);
  sizes.append(ElementSizes::basic(0), 0);
  EXPECT_TRUE(sizes.known());
  EXPECT_EQ(sizes.begin_before(0), 0);
}

TEST(ElementSizes, EqualPartsHaveThePeriodOfOneElement) {
  ElementSizes sizes;
  for (int i = 0; i < 100'000; ++i) sizes.append(ElementSizes::basic(4), 12);
  EXPECT_TRUE(sizes.known());
  EXPECT_EQ(sizes, ElementSizes([] {
              ElementSizes once;
              once.append(ElementSizes::basic(4), 1'200'000);
              return once;
            }()));
  EXPECT_EQ(sizes.begin_before(5'000'003), 5'000'000);
}

TEST(ElementSizes, TooManyPartsAreNotKnown) {
  ElementSizes pair;
  pair.append(ElementSizes::basic(4), 4);
  pair.append(ElementSizes::basic(8), 8);
  ElementSizes many;
  many.append(pair, 12 * 1000);
  EXPECT_FALSE(many.known());
  ElementSizes more;
  more.append(many, 12'000);
  EXPECT_FALSE(more.known());
}

/// Structs of structs, against the list of all beginnings.
TEST(ElementSizes, RandomStructs) {
  std::minstd_rand random(7);
  for (int round = 0; round < 500; ++round) {
    struct Type {
      ElementSizes sizes;
      std::vector<std::int64_t> elements;  // of one period
      std::int64_t bytes = 0;
    };
    std::vector<Type> types;
    for (const std::int64_t bytes : {1, 2, 4, 8, 12, 16}) types.push_back({ElementSizes::basic(bytes), {bytes}, bytes});
    for (int made = 0; made < 4; ++made) {
      Type type;
      for (unsigned part = 0; part < 1 + random() % 3; ++part) {
        const Type& child = types[random() % types.size()];
        const std::int64_t repeated = 1 + static_cast<std::int64_t>(random() % 3);
        type.sizes.append(child.sizes, repeated * child.bytes);
        type.bytes += repeated * child.bytes;
        for (std::int64_t i = 0; i < repeated; ++i)
          type.elements.insert(type.elements.end(), child.elements.begin(), child.elements.end());
      }
      types.push_back(type);
    }
    const Type& type = types.back();
    if (!type.sizes.known()) continue;
    std::set<std::int64_t> begins;
    std::int64_t at = 0;
    for (int period = 0; period < 3; ++period)
      for (const std::int64_t bytes : type.elements) {
        begins.insert(at);
        at += bytes;
      }
    begins.insert(at);
    for (std::int64_t position = 0; position < at; ++position)
      ASSERT_EQ(type.sizes.begin_before(position), *std::prev(begins.upper_bound(position)))
          << round << " " << position;
  }
}

}  // namespace
