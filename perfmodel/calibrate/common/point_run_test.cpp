// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/point_run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace bestride::inline perfmodel {
namespace {

/// Points "0", "1", ... whose behavior the members below define.
class TestPoints : public PointSet {
 public:
  std::size_t size() const override { return 4; }
  std::string id(std::size_t i) const override { return std::to_string(i); }
  bool required(std::size_t i) const override { return i == required_; }
  Result<bool> measure(std::size_t i, StateWriter* state) override {
    if (i == failing_) return Error{"it failed"};
    if (disturbed_[i]-- > 0) return false;
    state->done(id(i));
    return true;
  }
  std::size_t required_ = 99, failing_ = 99;
  std::map<std::size_t, int> disturbed_;
};

class PointRunTest : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  /// The events that the run prints.
  std::string run(std::set<std::string> done, double budget_s) {
    testing::internal::CaptureStdout();
    auto state = StateWriter::open(path_, "a subject", true);
    PointRun run({&points_}, std::move(done), std::move(*state), budget_s);
    order_.clear();
    error_ = run.measure(points_, 1, [&](std::size_t i) { order_.push_back(i); });
    run.end();
    return testing::internal::GetCapturedStdout();
  }
  std::string path_ = testing::TempDir() + "bestride_point_run_" + std::to_string(::getpid());
  TestPoints points_;
  std::vector<std::size_t> order_;
  std::string error_;
};

TEST_F(PointRunTest, MeasuresWhatIsMissingInOrder) {
  EXPECT_TRUE(run({"1"}, 60).starts_with("plan 4 1\nat 2 0\nat 3 2\nat 4 3\nend 3 0 "));
  EXPECT_EQ(error_, "");
  const StateFile file = read_state_file(path_);
  EXPECT_EQ(file.subject, "a subject");
  ASSERT_EQ(file.points.size(), 3u);
  EXPECT_EQ(file.points[1].id, "2");
}

TEST_F(PointRunTest, DisturbedPointIsMeasuredAgainAtTheEnd) {
  points_.disturbed_ = {{0, 1}, {2, 99}};
  EXPECT_NE(run({}, 60).find("end 3 1 "), std::string::npos);
  EXPECT_EQ(order_, (std::vector<std::size_t>{0, 1, 2, 3, 0, 2, 2}));
}

TEST_F(PointRunTest, AfterTheTimeLimitOnlyRequiredPointsAreMeasured) {
  points_.required_ = 2;
  EXPECT_NE(run({}, -1).find("end 1 3 "), std::string::npos);
  EXPECT_EQ(order_, std::vector<std::size_t>{2});
}

TEST_F(PointRunTest, ErrorEndsTheSet) {
  points_.failing_ = 1;
  EXPECT_NE(run({}, 60).find("end 1 3 "), std::string::npos);
  EXPECT_EQ(order_, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(error_, "it failed");
}

}  // namespace
}  // namespace bestride::inline perfmodel
