// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "perfmodel/measure/collective_state.hpp"

namespace bestride {
namespace {

TEST(CollectivePlan, PointsAreDistinctAndCoarseFirst) {
  const std::vector<CollectivePoint> all = make_collective_plan(false), quick = make_collective_plan(true);
  std::set<std::string> ids;
  for (const CollectivePoint& point : all) EXPECT_TRUE(ids.insert(point.id()).second) << point.id();
  EXPECT_EQ(all.size(), std::size_t{collective_sizes} * 2 * (collective_count - 1));
  EXPECT_LT(quick.size(), all.size());
  EXPECT_TRUE(std::equal(quick.begin(), quick.end(), all.begin())) << "a quick run's points are the first of a whole one";
}

class CollectiveStateFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "bestride_collective_state_" + std::to_string(::getpid());
    place_.nodes = 3, place_.ranks = 6, place_.most_on_a_node = 2, place_.ring_entries = 1;
  }
  void TearDown() override { std::remove(path_.c_str()); }
  void write(bool anew, double scale) const {
    auto writer = CollectiveStateWriter::open(path_, configuration_, place_, anew);
    ASSERT_TRUE(writer);
    writer->link(link_fields[0], 1e-5 * scale);
    writer->point(point_, 2e-3 * scale, 3e-3 * scale);
  }
  std::string path_;
  const std::string configuration_ = "CPU X, avx2 | MPICH 4.0.2 | 2 cores | 0.1.0";
  const CollectivePoint point_{Collective::reduce_scatter, false, 3};
  CollectiveSetting place_;
};

TEST_F(CollectiveStateFile, ComesBackAndIsAppendedTo) {
  write(true, 1);
  CollectiveState state = read_collective_state(path_, configuration_, &place_);
  EXPECT_EQ(state.done, (std::set<std::string>{"latency", "reduce_scatter.nonblocking.3"}));
  EXPECT_NEAR(state.values.link.latency_s, 1e-5, 1e-10);
  EXPECT_TRUE(std::isnan(state.values.link.wire_byte_s));
  ASSERT_EQ(state.values.settings.size(), 1u);
  EXPECT_TRUE(state.values.settings[0].same_place(place_));
  const auto what = static_cast<std::size_t>(Collective::reduce_scatter);
  EXPECT_NEAR(state.values.settings[0].hierarchical[what][0][3], 2e-3, 1e-8);
  EXPECT_NEAR(state.values.settings[0].library[what][0][3], 3e-3, 1e-8);
  EXPECT_TRUE(std::isnan(state.values.settings[0].library[what][1][3]));
  write(false, 2);
  EXPECT_NEAR(read_collective_state(path_, configuration_).values.settings[0].library[what][0][3], 6e-3, 1e-8) << "the later value";
  write(true, 3);
  EXPECT_NEAR(read_collective_state(path_, configuration_).values.link.latency_s, 3e-5, 1e-10);
}

TEST_F(CollectiveStateFile, OfAnotherPlaceOrConfigurationIsEmpty) {
  write(true, 1);
  EXPECT_TRUE(read_collective_state(path_, "another").done.empty());
  CollectiveSetting elsewhere = place_;
  elsewhere.ring_entries = 2;
  EXPECT_TRUE(read_collective_state(path_, configuration_, &elsewhere).done.empty());
  EXPECT_TRUE(read_collective_state(path_ + "?", configuration_).done.empty());
}

TEST_F(CollectiveStateFile, ALineCutOffIsMeasuredAgain) {
  write(true, 1);
  std::ofstream(path_, std::ios::app) << "point allgather.blocking.2 1e6 5";
  EXPECT_EQ(read_collective_state(path_, configuration_).done.size(), 2u);
  write(false, 1);
  const CollectiveState state = read_collective_state(path_, configuration_);
  EXPECT_EQ(state.done.count("reduce_scatter.nonblocking.3"), 1u) << "what follows it counts";
}

TEST_F(CollectiveStateFile, LinksAloneAreNoSetting) {
  {
    auto writer = CollectiveStateWriter::open(path_, configuration_, place_, true);
    ASSERT_TRUE(writer);
    writer->link(link_fields[2], 1e-8);
  }
  const CollectiveState state = read_collective_state(path_, configuration_);
  EXPECT_EQ(state.values.link.wire_byte_s, 1e-8);
  EXPECT_TRUE(state.values.settings.empty());
}

}  // namespace
}  // namespace bestride
