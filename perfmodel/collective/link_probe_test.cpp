// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/link_probe.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "perfmodel/collective/test_values.hpp"

namespace bestride::inline perfmodel {
namespace {

/// A link with a token bucket: `burst` bytes pass at once, later ones at the rate; tokens return at the rate.
class ShapedLink {
 public:
  ShapedLink(double latency_s, double byte_s, double burst) : latency_(latency_s), byte_(byte_s), burst_(burst) {}
  double operator()(std::int64_t bytes) {
    ++exchanges;
    sent += bytes;
    const double late = std::max(0.0, static_cast<double>(bytes) - tokens_) * byte_;
    const double seconds = 2 * latency_ + late + (exchanges == 1 ? connection_s : 0) + delays_(random_);
    tokens_ = std::min(burst_, std::max(0.0, tokens_ - static_cast<double>(bytes)) + (seconds - late) / byte_);
    taken += seconds;
    return seconds;
  }
  /// In one of eight exchanges a rank is descheduled for 4 ms.
  void disturb(unsigned seed) { random_.seed(seed), delays_ = std::discrete_distribution<>({7, 0, 0, 0, 1}); }

  static constexpr double connection_s = 1e-3;
  int exchanges = 0;
  std::int64_t sent = 0;
  double taken = 0;

 private:
  struct Delays {
    std::discrete_distribution<> ms{{1}};
    Delays& operator=(const std::discrete_distribution<>& other) { return ms = other, *this; }
    double operator()(std::mt19937& random) { return ms(random) * 1e-3; }
  };
  double latency_, byte_, burst_, tokens_ = burst_;
  Delays delays_;
  std::mt19937 random_{1};
};

TEST(LinkProbe, FindsLatencyAndRate) {
  for (double mbit : {10.0, 50.0, 200.0, 1000.0, 10e3, 100e3, 400e3})
    for (double latency : {1e-6, 30e-6, 500e-6}) {
      const double byte = 8 / (mbit * 1e6);
      ShapedLink link(latency, byte, 0);
      const auto speed = probe_link(link);
      ASSERT_TRUE(speed) << mbit;
      EXPECT_NEAR(speed->latency_s, latency, latency * 1e-6);
      EXPECT_NEAR(speed->byte_s, byte, byte * 1e-6);
      EXPECT_LE(link.sent, 4 * link_probe_bytes);
    }
}

TEST(LinkProbe, TakesFewMillisecondsOnAFastLink) {
  for (double mbit : {10e3, 100e3}) {
    ShapedLink link(5e-6, 8 / (mbit * 1e6), 0);
    ASSERT_TRUE(probe_link(link));
    EXPECT_LT(link.taken - ShapedLink::connection_s, 2.2e-3) << mbit;
  }
}

TEST(LinkProbe, IsNotMisledByABurst) {
  for (double mbit : {50.0, 200.0, 500.0})
    for (double burst : {16e3, 80e3, 200e3}) {
      const double byte = 8 / (mbit * 1e6);
      ShapedLink link(30e-6, byte, burst);
      const auto speed = probe_link(link);
      ASSERT_TRUE(speed);
      EXPECT_LE(speed->byte_s, byte * 1.001);
      EXPECT_GE(speed->byte_s, byte * 0.5) << mbit << " Mbit/s, burst " << burst;
    }
}

TEST(LinkProbe, IsNotMisledByRanksThatAreDescheduled) {
  int right = 0;
  constexpr int jobs = 300;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    ShapedLink link(30e-6, 8 / 1e10, 0);
    link.disturb(seed);
    const auto speed = probe_link(link);
    ASSERT_TRUE(speed);
    EXPECT_NEAR(speed->latency_s, 30e-6, 1e-9);
    right += std::abs(speed->byte_s - 8 / 1e10) < 1e-13;
  }
  EXPECT_GE(right, jobs * 98 / 100);
}

TEST(LinkProbe, GivesNoValueAfterAFailedExchange) {
  int exchanges = 0;
  ASSERT_TRUE(probe_link([&](std::int64_t bytes) { return ++exchanges, 1e-6 + static_cast<double>(bytes) * 1e-10; }));
  const int all = exchanges;
  for (int failing = 1; failing <= all; ++failing) {
    exchanges = 0;
    EXPECT_FALSE(probe_link([&](std::int64_t bytes) {
      return ++exchanges == failing ? -1 : 1e-6 + static_cast<double>(bytes) * 1e-10;
    })) << failing;
    EXPECT_EQ(exchanges, failing) << "goes on after a failure";
  }
}

TEST(LinkProbe, GivesNoValueIfLongMessagesTakeNoLonger) {
  EXPECT_FALSE(probe_link([](std::int64_t) { return 1e-6; }));
  EXPECT_FALSE(probe_link([](std::int64_t) { return 0.0; }));
}

TEST(LinkProbe, DecidesOnlyWhereResultsHaveTheSameBits) {
  CollectiveParameters parameters = parameters_of({});
  const CollectiveChooser before(parameters);
  parameters.use_job_link({50e-6, 8 / 200e6});
  ASSERT_TRUE(parameters.intact());
  const CollectiveChooser after(parameters);
  int changed = 0;
  for (Collective what : all_collectives)
    for (std::int64_t bytes = KiB; bytes <= 64 * MiB; bytes *= 2) {
      const CollectiveShape shape = on(what, bytes, 4, 2);
      EXPECT_EQ(after.choose(shape, false).hierarchical, before.choose(shape, false).hierarchical);
      changed += after.choose(shape).hierarchical != before.choose(shape).hierarchical;
    }
  EXPECT_GT(changed, 0);
  EXPECT_FALSE(before.choose(on(allgather, 4 * MiB, 4, 2)).hierarchical);
  EXPECT_TRUE(after.choose(on(allgather, 4 * MiB, 4, 2)).hierarchical)
      << "the library sends 7/6 of the bytes over a link of 200 Mbit/s";
}

}  // namespace
}  // namespace bestride::inline perfmodel
