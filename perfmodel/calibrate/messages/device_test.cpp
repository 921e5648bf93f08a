// SPDX-License-Identifier: Apache-2.0
// Tests the measurement of a GPU, end to end. On the stand-in driver the values have no meaning; the tests check that
// values are measured, are stored, and make a profile.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "perfmodel/calibrate/messages/device_points.hpp"
#include "perfmodel/calibrate/messages/state.hpp"
#include "perfmodel/profile/gpu_machine.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {
namespace {

/// Points up to 16 KiB, which include every kind.
std::vector<DevicePoint> short_plan() {
  std::vector<DevicePoint> plan = make_device_plan(true);
  std::erase_if(
      plan, [](const DevicePoint& point) { return point.kind != DevicePoint::Kind::floor && point.bytes() > 16384; });
  return plan;
}

class Gpu : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  std::string path_ = testing::TempDir() + "bestride_gpu_state_" + std::to_string(::getpid());
};

PointRun start_run(const PointSet& points, std::set<std::string> done, const std::string& path, double budget_s) {
  auto state = StateWriter::open(path, messages_subject("here"), done.empty());
  if (!state) throw std::runtime_error(state.error().text);
  return PointRun({&points}, std::move(done), std::move(*state), budget_s);
}

TEST_F(Gpu, IsMeasuredStoredAndResumed) {
  auto session = GpuSession::open();
  ASSERT_TRUE(session) << session.error().text;
  EXPECT_EQ(session->stand_in(), std::getenv("BESTRIDE_CUDA_DRIVER") != nullptr);
  EXPECT_NE(session->name().find(", CUDA "), std::string::npos);
  DevicePoints points(*session, short_plan(), 1e-4);
  const int all = static_cast<int>(points.size());
  int seen = 0;
  {
    PointRun run = start_run(points, {}, path_, 60);
    EXPECT_EQ(run.measure(points, 1, [&](std::size_t) { ++seen; }), "");
    EXPECT_EQ(run.measured(), all);
    EXPECT_EQ(run.left_out(), 0);
  }
  EXPECT_EQ(seen, all);
  const MessagesState state = read_messages_state(path_, "here");
  EXPECT_EQ(state.gpu, session->name());
  EXPECT_EQ(state.device.stand_in, session->stand_in());
  EXPECT_EQ(static_cast<int>(state.done.size()), all);
  for (const CostGrid& grid : state.device.grids)
    for (const auto& row : grid.log_seconds)
      for (float value : row) EXPECT_FALSE(std::isinf(value));

  PointRun again = start_run(points, state.done, path_, 60);
  EXPECT_EQ(again.measure(points, 1, [](std::size_t) { FAIL() << "all are known"; }), "");
  EXPECT_EQ(again.measured(), 0);
}

TEST_F(Gpu, LeavesNothingBehind) {
  { ASSERT_TRUE(GpuSession::open()); }
  auto session = GpuSession::open();
  ASSERT_TRUE(session);
  DeviceMeasurer measurer(*session, 1e-4);
  EXPECT_TRUE(measurer.measure(short_plan().back()));
}

TEST_F(Gpu, IsDistinguishedFromAnother) {
  auto session = GpuSession::open();
  ASSERT_TRUE(session);
  const cuda::Driver& driver = session->device()->driver();
  MachineFingerprint profile;
  profile.cpu = "Example CPU";
  EXPECT_EQ(why_other_gpu(profile, driver, 0), "") << "none was measured";
  profile.gpu = session->name();
  EXPECT_EQ(why_other_gpu(profile, driver, session->device()->ordinal()), "");
  profile.gpu = "Abacus 4000, CUDA 12.4";
  EXPECT_NE(why_other_gpu(profile, driver, 0).find("another GPU or driver ('Abacus 4000, CUDA 12.4', here '"),
            std::string::npos);
}

TEST_F(Gpu, IsDescribed) {
  const GpuSummary summary = look_at_gpus();
  EXPECT_EQ(summary.problem, "");
  ASSERT_FALSE(summary.devices.empty());
  EXPECT_GE(summary.version, 12000);
  EXPECT_NE(summary.devices[0].find("capability "), std::string::npos);
}

/// With a failure forced by an environment variable: it is reported in one line, nothing hangs, and earlier results are
/// kept.
TEST(GpuThatFails, IsSaidAndEndsItsPart) {
  if (!std::getenv("FAKE_CUDA_FAIL")) GTEST_SKIP() << "no failure is forced";
  auto session = GpuSession::open();
  if (!session) {
    EXPECT_NE(session.error().text, "");
    return;
  }
  const std::string path = testing::TempDir() + "bestride_gpu_fails_" + std::to_string(::getpid());
  DevicePoints points(*session, short_plan(), 1e-4);
  PointRun run = start_run(points, {}, path, 60);
  const std::string error = run.measure(points, 1, [](std::size_t) {});
  ::unlink(path.c_str());
  EXPECT_NE(error, "");
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_EQ(run.measured() + run.left_out(), static_cast<int>(points.size()));
}

}  // namespace
}  // namespace bestride::inline perfmodel
