// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/rails_gain.hpp"

#include <gtest/gtest.h>

namespace bestride::inline perfmodel {
namespace {

/// Exchanges of two nodes, in seconds.
RailSamples samples(std::initializer_list<const char*> without, std::initializer_list<const char*> with) {
  RailSamples made;
  for (const char* one : without) EXPECT_TRUE(made.add(false, one)) << one;
  for (const char* one : with) EXPECT_TRUE(made.add(true, one)) << one;
  return made;
}

TEST(RailsGain, IsTheMediansRatio) {
  const RailSamples two = samples({"2 2", "9 9", "2 2"}, {"1 1", "1 1", "7 7"});
  EXPECT_DOUBLE_EQ(*rails_gain(two), 2);
  EXPECT_TRUE(rails_are_faster(two));
  EXPECT_DOUBLE_EQ(*rails_gain(samples({"2 2", "4 4"}, {"1 1"})), 3) << "the mean of the middle two of an even number";
}

TEST(RailsGain, IsTheLeastOfAllNodes) {
  const RailSamples one_slower = samples({"2 2", "2 2"}, {"1 2", "1 2"});
  EXPECT_DOUBLE_EQ(*rails_gain(one_slower), 1);
  EXPECT_FALSE(rails_are_faster(one_slower));
}

TEST(RailsGain, HasAMargin) {
  EXPECT_TRUE(rails_are_faster(samples({"1.16 1.2"}, {"1 1"})));
  EXPECT_FALSE(rails_are_faster(samples({"1.14 2"}, {"1 1"})));
  EXPECT_FALSE(rails_are_faster(samples({"1 1"}, {"2 2"})));
}

TEST(RailsGain, NeedsBothKinds) {
  EXPECT_FALSE(rails_gain(RailSamples{}));
  EXPECT_FALSE(rails_are_faster(RailSamples{}));
  EXPECT_FALSE(rails_are_faster(samples({"5 5"}, {})));
  EXPECT_FALSE(rails_are_faster(samples({}, {"5 5"})));
}

TEST(RailsGain, IgnoresOtherRecords) {
  RailSamples two = samples({"2 2"}, {"1 1"});
  for (const char* bad : {"", " ", "1", "1 2 3", "1 x", "1 2x", "1 0", "1 -1", "1 nan", "1 inf"}) {
    EXPECT_FALSE(two.add(true, bad)) << bad;
    EXPECT_FALSE(two.add(false, bad)) << bad;
  }
  EXPECT_DOUBLE_EQ(*rails_gain(two), 2);
  EXPECT_EQ(two.with[0].size(), 1u);
}

}  // namespace
}  // namespace bestride::inline perfmodel
