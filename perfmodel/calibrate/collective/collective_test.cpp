// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

#include "perfmodel/calibrate/collective/state.hpp"
#include "perfmodel/calibrate/common/paired_samples.hpp"
#include "perfmodel/collective/choice.hpp"

namespace bestride::inline perfmodel {
namespace {

TEST(CollectivePlan, PointsAreDistinctAndCoarseFirst) {
  const std::vector<CollectivePoint> all = make_collective_plan(false), quick = make_collective_plan(true);
  std::set<std::string> ids;
  for (const CollectivePoint& point : all) EXPECT_TRUE(ids.insert(point.id()).second) << point.id();
  EXPECT_EQ(all.size(), std::size_t{collective_sizes} * 2 * (collective_count - 1));
  EXPECT_LT(quick.size(), all.size());
  EXPECT_TRUE(std::equal(quick.begin(), quick.end(), all.begin()))
      << "the points of a quick run are the first of a full run";
}

TEST(VariantTimes, OfPairs) {
  const VariantTimes one = compare_variants({3}, {2});
  EXPECT_DOUBLE_EQ(one.mpi, 3);
  EXPECT_DOUBLE_EQ(one.pmpi, 2);
  EXPECT_DOUBLE_EQ(one.noise, 1);
  const VariantTimes three = compare_variants({2, 4, 9}, {1, 2, 3});  // 2, 2, 3
  EXPECT_DOUBLE_EQ(three.mpi, 4);
  EXPECT_DOUBLE_EQ(three.pmpi, 2);
  EXPECT_NEAR(three.noise, 0.5 / std::sqrt(3), 1e-12);
  const VariantTimes many = compare_variants(std::vector<double>(15, 4.0), std::vector<double>(15, 2.0));
  EXPECT_DOUBLE_EQ(many.mpi, 4);
  EXPECT_DOUBLE_EQ(many.noise, 0);
}

/// Times on a busy machine: both variants of a pair are slowed down by the same factor, and each one also by a smaller
/// factor of its own.
struct BusyMachine {
  explicit BusyMachine(unsigned seed) : random(seed) {}
  double uniform() {
    return static_cast<double>(random() - random.min()) / static_cast<double>(random.max() - random.min());
  }
  VariantTimes measure(double mpi, double pmpi, int pairs, double jitter) {
    std::vector<double> first, second;
    for (int i = 0; i < pairs; ++i) {
      const double slow = 1 + 4 * uniform() * uniform();
      first.push_back(mpi * slow * (1 + jitter * uniform()));
      second.push_back(pmpi * slow * (1 + jitter * uniform()));
    }
    return compare_variants(first, second);
  }
  std::minstd_rand random;
};

TEST(VariantTimes, CommonSlowdownCancels) {
  int beyond = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const VariantTimes both = BusyMachine(seed).measure(0.87, 1, 5, 0.04);
    EXPECT_NEAR(both.mpi / both.pmpi, 0.87, 0.04);
    const double wrong = both.mpi / both.pmpi / 0.87;
    beyond += wrong > 1 + both.noise || wrong * (1 + both.noise) < 1;
  }
  EXPECT_LE(beyond, 80) << "of 400: the noise is a bound in four of five cases";
}

/// 4 x 2 ranks, 4 MiB, 50 Mbit/s: when measured on a busy machine, an allgather that is 1.15 times faster was left to
/// MPI.
TEST(VariantTimes, ChoiceHoldsOnABusyMachine) {
  CollectiveSetting place;
  place.nodes = 4, place.ranks = 8, place.max_ranks_per_node = 2;
  const CollectiveShape shape = place.shape(Collective::allgather, true, 5);
  LinkCosts link = LinkCosts::built_in();
  link.wire_byte_s = link.stream_byte_s = 8 / (0.956 * 50e6);
  const double library = library_cost(shape, link).seconds;
  const auto chosen = [&](const VariantTimes& both) {
    CollectiveMeasurements measured;
    measured.link = link;
    measured.settings.push_back(place);
    measured.settings[0].hierarchical[0][1][5] = static_cast<float>(both.mpi);
    measured.settings[0].library[0][1][5] = static_cast<float>(both.pmpi);
    measured.settings[0].noise[0][1][5] = static_cast<float>(both.noise);
    return CollectiveChooser(parameters_of(measured)).choose(shape).hierarchical;
  };
  int taken = 0, taken_though_slower = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    taken += chosen(BusyMachine(seed).measure(library / 1.15, library, 3, 0.3));
    taken_though_slower += chosen(BusyMachine(seed).measure(library * 1.25, library, 9, 0.1));
  }
  EXPECT_GE(taken, 380);
  EXPECT_EQ(taken_though_slower, 0);
}

class CollectiveStateFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "bestride_collective_state_" + std::to_string(::getpid());
    place_.nodes = 3, place_.ranks = 6, place_.max_ranks_per_node = 2, place_.ring_entries = 1;
  }
  void TearDown() override { std::remove(path_.c_str()); }
  void write(bool anew, double scale) const {
    auto writer = StateWriter::open(path_, collectives_subject(configuration_, place_), anew);
    ASSERT_TRUE(writer);
    write_link(*writer, link_fields[0], 1e-5 * scale);
    write_point(*writer, point_, {2e-3 * scale, 3e-3 * scale, 0.01 * scale});
  }
  std::string path_;
  const std::string configuration_ = "CPU X, avx2 | MPICH 4.0.2 | 2 cores | 0.1.0";
  const CollectivePoint point_{Collective::reduce_scatter, false, 3};
  CollectiveSetting place_;
};

TEST_F(CollectiveStateFile, RoundTripAndAppend) {
  write(true, 1);
  CollectivesState state = read_collectives_state(path_, configuration_, &place_);
  EXPECT_EQ(state.done, (std::set<std::string>{"latency", "reduce_scatter.nonblocking.3"}));
  EXPECT_NEAR(state.values.link.latency_s, 1e-5, 1e-10);
  EXPECT_TRUE(std::isnan(state.values.link.wire_byte_s));
  ASSERT_EQ(state.values.settings.size(), 1u);
  EXPECT_TRUE(state.values.settings[0].same_place(place_));
  const auto what = static_cast<std::size_t>(Collective::reduce_scatter);
  EXPECT_NEAR(state.values.settings[0].hierarchical[what][0][3], 2e-3, 1e-8);
  EXPECT_NEAR(state.values.settings[0].library[what][0][3], 3e-3, 1e-8);
  EXPECT_TRUE(std::isnan(state.values.settings[0].library[what][1][3]));
  EXPECT_NEAR(state.values.settings[0].noise[what][0][3], 0.01, 1e-6);
  EXPECT_TRUE(std::isnan(state.values.settings[0].noise[what][1][3]));
  write(false, 2);
  EXPECT_NEAR(read_collectives_state(path_, configuration_).values.settings[0].library[what][0][3], 6e-3, 1e-8)
      << "the later value";
  write(true, 3);
  EXPECT_NEAR(read_collectives_state(path_, configuration_).values.link.latency_s, 3e-5, 1e-10);
}

TEST_F(CollectiveStateFile, OtherPlacementOrConfigurationIsIgnored) {
  write(true, 1);
  EXPECT_TRUE(read_collectives_state(path_, "another").done.empty());
  CollectiveSetting elsewhere = place_;
  elsewhere.ring_entries = 2;
  EXPECT_TRUE(read_collectives_state(path_, configuration_, &elsewhere).done.empty());
  EXPECT_TRUE(read_collectives_state(path_ + "?", configuration_).done.empty());
  std::ofstream(path_, std::ios::app) << "piece 17\ndone piece\n";
  EXPECT_EQ(read_collectives_state(path_, configuration_).values.link.piece_bytes, 0) << "an invalid piece";
}

TEST_F(CollectiveStateFile, TruncatedLineIsMeasuredAgain) {
  write(true, 1);
  std::ofstream(path_, std::ios::app) << "point allgather.blocking.2 1e6 5";
  EXPECT_EQ(read_collectives_state(path_, configuration_).done.size(), 2u);
  write(false, 1);
  const CollectivesState state = read_collectives_state(path_, configuration_);
  EXPECT_EQ(state.done.count("reduce_scatter.nonblocking.3"), 1u) << "the lines after it are read";
}

TEST_F(CollectiveStateFile, LinksAloneAreNotASetting) {
  {
    auto writer = StateWriter::open(path_, collectives_subject(configuration_, place_), true);
    ASSERT_TRUE(writer);
    write_link(*writer, link_fields[2], 1e-8);
    write_piece(*writer, 65536);
  }
  const CollectivesState state = read_collectives_state(path_, configuration_);
  EXPECT_EQ(state.values.link.wire_byte_s, 1e-8);
  EXPECT_EQ(state.values.link.piece_bytes, 65536);
  EXPECT_EQ(state.done.count(piece_id), 1u);
  EXPECT_TRUE(state.values.settings.empty());
}

}  // namespace
}  // namespace bestride::inline perfmodel
