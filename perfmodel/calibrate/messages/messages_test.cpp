// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "perfmodel/calibrate/common/sample_plan.hpp"
#include "perfmodel/calibrate/common/sampling.hpp"
#include "perfmodel/calibrate/device/device_plan.hpp"
#include "perfmodel/calibrate/messages/state.hpp"
#include "perfmodel/profile/complete.hpp"

namespace bestride::inline perfmodel {
namespace {

TEST(Plan, PointsAreDistinctCoarseFirstAndFitMemory) {
  const std::vector<Point> plan = make_plan({});
  std::set<std::string> ids;
  int level = 0;
  for (const Point& point : plan) {
    EXPECT_TRUE(ids.insert(point.id()).second) << point.id();
    EXPECT_GE(point.level, level);
    level = point.level;
    EXPECT_LE(footprint_of(point), 256 << 20);
    if (point.kind == Shape::Class::contiguous) continue;
    for (const Series& series : series_at(point))
      EXPECT_EQ(point.block() % (series.leaf == Leaf::four || point.block() == 4 ? 4 : 8), 0);
  }
}

TEST(Plan, QuickIsASubsetThatSufficesForEveryClass) {
  const std::vector<Point> all = make_plan({}), quick = make_plan({.depth = Depth::quick});
  EXPECT_LT(quick.size() * 2, all.size());
  const std::vector<Point> standard = make_plan({.depth = Depth::standard});
  EXPECT_LT(quick.size(), standard.size());
  EXPECT_LT(standard.size(), all.size());
  EXPECT_TRUE(std::equal(standard.begin(), standard.end(), all.begin())) << "the other points come after these";
  Measurements measured;
  for (const Point& point : quick) {
    EXPECT_NE(std::find(all.begin(), all.end(), point), all.end());
    if (point.kind == Shape::Class::contiguous) continue;
    for (const Series& series : series_at(point))
      measured[{point.call_class, point.kind, series.engine, point.spread, series.leaf}].set(point.bytes_index,
                                                                                             point.block_index, 1e-6);
  }
  for (CallClass call_class : {CallClass::pack, CallClass::unpack, CallClass::send_node, CallClass::exchange_node,
                               CallClass::send_self, CallClass::receive_self, CallClass::exchange_self})
    for (int c = 1; c <= class_count; ++c)
      for (Engine engine : {Engine::split, Engine::kernel})
        EXPECT_GE((measured[{call_class, static_cast<Shape::Class>(c), engine}].measured()), min_points)
            << name(call_class) << " " << c;
}

TEST(Plan, OnlySomeCallsAndTwoHosts) {
  for (const Point& point : make_plan({.only = {CallKind::unpack}})) EXPECT_EQ(point.call_class, CallClass::unpack);
  for (const Point& point : make_plan({.network = true})) EXPECT_NE(point.call_class, CallClass::send_node);
}

TEST(Plan, OfNearRanksHasContiguousMessagesAlone) {
  std::set<CallClass> seen;
  for (const Point& point : make_plan({.near = Distance::cache})) {
    seen.insert(point.call_class);
    EXPECT_EQ(point.kind, Shape::Class::contiguous);
  }
  EXPECT_EQ(seen, (std::set<CallClass>{CallClass::send_cache, CallClass::exchange_cache}));
  EXPECT_TRUE(make_plan({.only = {CallKind::pack}, .near = Distance::cache}).empty());
}

TEST(DevicePlan, PointsAreDistinctCoarseFirstFitMemoryAndAreWhatTheySay) {
  std::set<std::string> ids;
  int level = 0;
  for (const DevicePoint& point : make_device_plan(false)) {
    EXPECT_TRUE(ids.insert(point.id()).second) << point.id();
    EXPECT_GE(point.level, level);
    level = point.level;
    if (point.kind == DevicePoint::Kind::floor || point.bytes() > 1 << 18) continue;
    const LayoutPtr layout = layout_of(point);
    EXPECT_EQ(layout->size(), point.bytes());
    EXPECT_LE(layout->high(), 256 << 20);
    if (point.kind != DevicePoint::Kind::grid) continue;
    EXPECT_EQ(layout->blocks(), point.bytes() / point.block()) << point.id();
    const Shape shape = Shape::of(*layout);
    EXPECT_EQ(shape.kind, point.key.walk == DeviceWalk::listed ? Shape::Class::list : Shape::Class::vector)
        << point.id();
  }
}

TEST(DevicePlan, WiresAreTheOtherRanksAndOnesOwn) {
  DeviceMeasurements measured;
  for (const DevicePoint& point : make_wire_plan(Distance::network)) store(point, 1e-5, &measured);
  for (Distance distance : {Distance::self, Distance::node, Distance::network}) {
    int points = 0;
    for (float value : measured.contiguous[static_cast<std::size_t>(distance)].log_seconds)
      points += !std::isnan(value);
    EXPECT_EQ(points, distance == Distance::node ? 0 : curve_points);
  }
}

TEST(DevicePlan, QuickSufficesForEveryGrid) {
  DeviceMeasurements measured;
  for (const DevicePoint& point : make_device_plan(true)) store(point, 1e-5, &measured);
  for (DeviceWork work : {DeviceWork::kernel, DeviceWork::oneshot, DeviceWork::copy})
    for (Direction direction : {Direction::pack, Direction::unpack}) {
      EXPECT_GE((measured[{work, direction, DeviceWalk::dense}].measured()), min_points) << name(work);
      EXPECT_GT((measured[{DeviceWork::kernel, direction, DeviceWalk::listed}].measured()), 0);
    }
  for (float floor : measured.log_floors) EXPECT_FALSE(std::isnan(floor));
  for (Direction direction : {Direction::pack, Direction::unpack}) {
    const CostGrid &bulk = measured[{DeviceWork::bulk, direction}], &words = measured[{DeviceWork::kernel, direction}];
    EXPECT_GT(bulk.measured(), 0);
    for (std::size_t i = 0; i < bytes_points; ++i)
      for (std::size_t k = 0; k < block_points; ++k)
        EXPECT_TRUE(std::isnan(bulk.log_seconds[i][k]) || !std::isnan(words.log_seconds[i][k]))
            << "nothing to compare with";
  }
  EXPECT_LT(make_device_plan(true).size() * 2, make_device_plan(false).size());
}

TEST(Sampling, IsBounded) {
  for (double seconds : {0.0, 1e-9, 1e-6, 1e-4, 1e-2, 1.0}) {
    const SamplePlan plan = plan_samples(seconds, 4e-3);
    EXPECT_GE(plan.rounds, 5);
    EXPECT_LE(plan.rounds, max_rounds);
    EXPECT_GE(plan.turns, 1);
    EXPECT_LE(plan.turns, 2000);
  }
  EXPECT_EQ(lower_quartile({5, 1, 9, 3, 100, 2, 4, 8}), 3);
}

class State : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  void measure(const Point& point, double seconds) {
    auto writer = StateWriter::open(path_, messages_subject("here"), false);
    ASSERT_TRUE(writer);
    write_point(*writer, point, std::vector<double>(series_at(point).size(), seconds));
  }
  double broken(const Point& point) {
    return std::exp2(read_messages_state(path_, "here")
                         .values[{point.call_class, point.kind, Engine::split, point.spread, Leaf::eight}]
                         .log_seconds[point.bytes_index][point.block_index]);
  }
  std::string path_ = testing::TempDir() + "bestride_state_" + std::to_string(::getpid());
  Point first_{CallClass::send_node, Shape::Class::vector, Spread::dense, 3, 1, 0};
  Point second_{CallClass::pack, Shape::Class::list, Spread::wide, 4, 2, 0};
};

TEST_F(State, ResumesWhereItEnded) {
  measure(first_, 1e-6);
  measure(second_, 2e-6);
  const MessagesState state = read_messages_state(path_, "here");
  EXPECT_EQ(state.done, (std::set<std::string>{first_.id(), second_.id()}));
  EXPECT_NEAR(broken(first_), 1e-6, 1e-11);
  EXPECT_NEAR(broken(second_), 2e-6, 1e-11);
}

TEST_F(State, PointWithoutItsEndIsIgnored) {
  measure(first_, 1e-6);
  measure(second_, 2e-6);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_EQ(read_messages_state(path_, "here").done.size(), 1u);
  EXPECT_TRUE(std::isnan(broken(second_)));
}

TEST_F(State, TruncatedFileIsReadAndContinued) {
  measure(first_, 1e-6);
  measure(second_, 2e-6);
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  const std::string whole = text.str();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    std::ofstream(path_, std::ios::trunc) << whole.substr(0, length);
    EXPECT_LE(read_messages_state(path_, "here").done.size(), 2u);
    if (length == 0 || read_messages_state(path_, "here").done.empty()) continue;
    measure(second_, 3e-6);
    EXPECT_NEAR(broken(first_), 1e-6, 1e-11);
    EXPECT_NEAR(broken(second_), 3e-6, 1e-11);
  }
}

TEST_F(State, AnotherGpuInvalidatesMeasurements) {
  const std::vector<DevicePoint> plan = make_device_plan(true);
  measure(first_, 1e-6);
  const auto gpu = [&](const std::string& name, const DevicePoint& point) {
    auto writer = StateWriter::open(path_, messages_subject("here"), false);
    ASSERT_TRUE(writer);
    write_device_point(*writer, point, 3e-6, name, true);
  };
  gpu("GPU A, CUDA 13.0", plan[0]);
  gpu("GPU A, CUDA 13.0", plan[1]);
  MessagesState state = read_messages_state(path_, "here");
  EXPECT_EQ(state.gpu, "GPU A, CUDA 13.0");
  EXPECT_TRUE(state.device.stand_in);
  EXPECT_EQ(state.done, (std::set<std::string>{first_.id(), plan[0].id(), plan[1].id()}));
  EXPECT_NEAR(state.device.seconds(plan[0].floor), 3e-6, 1e-11);
  gpu("GPU B, CUDA 13.0", plan[2]);
  state = read_messages_state(path_, "here");
  EXPECT_EQ(state.gpu, "GPU B, CUDA 13.0");
  EXPECT_EQ(state.done, (std::set<std::string>{first_.id(), plan[2].id()}));
  EXPECT_TRUE(std::isnan(state.device.seconds(plan[0].floor)));
}

TEST_F(State, PointWithADamagedRecordIsMeasuredAgain) {
  std::ofstream(path_) << "bestride-measure 2 messages here\ngrid send/node vector broken\ndone " << first_.id()
                       << "\n";
  EXPECT_TRUE(read_messages_state(path_, "here").done.empty());
}

TEST_F(State, ThereIsNoGridBetweenNearRanks) {
  std::ofstream(path_) << "bestride-measure 2 messages here\ngrid send/cache vector split dense eight 3 1 1000\ndone "
                       << first_.id() << "\n";
  EXPECT_TRUE(read_messages_state(path_, "here").done.empty());
}

TEST_F(State, OtherConfigurationIsIgnored) {
  measure(first_, 1e-6);
  EXPECT_TRUE(read_messages_state(path_, "elsewhere").done.empty());
  EXPECT_TRUE(read_messages_state("/nonexistent/file", "here").done.empty());
}

}  // namespace
}  // namespace bestride::inline perfmodel
