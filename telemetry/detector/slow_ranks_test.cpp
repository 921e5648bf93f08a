// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/slow_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "telemetry/waits/sample_job.hpp"
#include "tests/support/repetitions.hpp"

using namespace bestride;

namespace {

/// A job of steps: each rank computes for a while, then waits until all have come.
class Steps {
 public:
  Steps(int ranks, double imbalance, std::uint64_t seed)
      : job(ranks), work_(static_cast<std::size_t>(ranks), 0.01), imbalance_(imbalance), random_(seed) {
    for (RankSnapshot& rank : job.ranks) {
      rank.ticks_per_second = 1e9;
      rank.sites.resize(3);
    }
  }
  /// Makes steps for `seconds`, with an observation every half second. Returns the result of the last one.
  std::vector<SlowRank> run(double seconds, bool paused = false) {
    std::vector<SlowRank> said;
    for (const double until = now_ + seconds; now_ < until;) {
      step();
      if (now_ < next_) continue;
      next_ = now_ + 0.5;
      said = detector_.observe(now_, job.ranks, paused);
      if (!said.empty() && first_ == 0) first_ = now_;
    }
    return said;
  }
  void set_work(int rank, double seconds) { work_[static_cast<std::size_t>(rank)] = seconds; }
  /// `share`: of the time that each rank waits for a processor from now on.
  void set_queued(double share) { queued_share_ = share; }
  void set_site(std::size_t site) { site_ = site; }
  double now() const { return now_; }
  double first() const { return first_; }

  SampleJob job;

 private:
  void step() {
    std::vector<double> times;
    for (const double work : work_)
      times.push_back(work * (1 + imbalance_ * std::uniform_real_distribution(-1.0, 1.0)(random_)));
    const double longest = *std::max_element(times.begin(), times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
      SiteSnapshot& site = job.ranks[i].sites[site_];
      ++site.calls;
      site.ticks += static_cast<std::uint64_t>((longest - times[i] + 1e-5) * 1e9);
    }
    for (RankSnapshot& rank : job.ranks) rank.use.queued_seconds += queued_share_ * (longest + 1e-5);
    now_ += longest + 1e-5;
  }

  std::vector<double> work_;
  double imbalance_, queued_share_ = 0;
  std::mt19937_64 random_;
  SlowRanks detector_;
  double now_ = 100, next_ = 100, first_ = 0;
  std::size_t site_ = 0;
};

class SlowRanksTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SlowRanksTest, testing::Range<std::uint64_t>(1, 1 + test::repetitions(30)));

TEST_P(SlowRanksTest, ImbalanceAtRandomIsNoFault) {
  for (const int ranks : {2, 4, 8}) {
    Steps steps(ranks, 0.3, GetParam());
    EXPECT_TRUE(steps.run(300).empty() && steps.first() == 0) << ranks << " ranks";
  }
}

TEST_P(SlowRanksTest, RanksThatAlwaysWaitForAProcessorAreNotCompared) {
  Steps steps(4, 0.02, GetParam());
  steps.set_queued(0.3);
  steps.run(30);
  steps.set_work(2, 0.015);
  EXPECT_TRUE(steps.run(120).empty() && steps.first() == 0);
}

TEST_P(SlowRanksTest, ARankThatBeginsToWaitForAProcessorIsSlow) {
  Steps steps(4, 0.02, GetParam());
  steps.run(30);
  steps.set_queued(0.3);
  steps.set_work(2, 0.015);
  const auto said = steps.run(20);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, 2);
}

TEST_P(SlowRanksTest, ConstantImbalanceIsNoFault) {
  Steps steps(4, 0.02, GetParam());
  steps.set_work(2, 0.015);
  EXPECT_TRUE(steps.run(120).empty() && steps.first() == 0);
}

TEST_P(SlowRanksTest, TwentyPercentWithinSevenSeconds) {
  for (const int ranks : {2, 4, 8}) {
    Steps steps(ranks, 0.02, GetParam());
    steps.run(20);
    const double begin = steps.now();
    steps.set_work(1, 0.012);
    const auto said = steps.run(7);
    ASSERT_EQ(said.size(), 1u) << ranks << " ranks";
    EXPECT_EQ(said[0].rank, 1);
    EXPECT_NEAR(said[0].factor, 1.2, 0.05);
    EXPECT_NEAR(said[0].since, begin, 2.6);
    steps.set_work(1, 0.01);
    EXPECT_TRUE(steps.run(5).empty()) << "it is as fast as before";
  }
}

TEST_P(SlowRanksTest, FivePercentWithinThirtySeconds) {
  for (const int ranks : {2, 4, 8}) {
    Steps steps(ranks, 0.02, GetParam());
    steps.run(20);
    steps.set_work(0, 0.0105);
    const auto said = steps.run(30);
    ASSERT_EQ(said.size(), 1u) << ranks << " ranks";
    EXPECT_EQ(said[0].rank, 0);
  }
}

/// The windows differ by more than a percent.
TEST_P(SlowRanksTest, FivePercentInNoiseWithinThirtySeconds) {
  for (const int ranks : {2, 4}) {
    Steps steps(ranks, 0.2, GetParam());
    steps.run(60);
    ASSERT_EQ(steps.first(), 0);
    steps.set_work(0, 0.0108);
    const auto said = steps.run(30);
    ASSERT_EQ(said.size(), 1u) << ranks << " ranks";
    EXPECT_EQ(said[0].rank, 0);
    EXPECT_EQ(steps.run(60).size(), 1u) << "as long as it is slow";
    steps.set_work(0, 0.01);
    steps.run(30);
    EXPECT_TRUE(steps.run(2).empty()) << "it is as fast as before";
  }
}

TEST_P(SlowRanksTest, AnotherPhaseOfTheProgramIsNoFault) {
  Steps steps(4, 0.02, GetParam());
  steps.run(20);
  steps.set_site(1);
  steps.set_work(0, 0.02);
  EXPECT_TRUE(steps.run(30).empty() && steps.first() == 0);
}

TEST_P(SlowRanksTest, PausesDoNotCount) {
  Steps steps(4, 0.02, GetParam());
  steps.run(20);
  steps.set_work(0, 0.02);
  EXPECT_TRUE(steps.run(30, true).empty());
}

}  // namespace
