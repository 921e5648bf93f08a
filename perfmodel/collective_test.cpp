// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "perfmodel/collective_choice.hpp"
#include "perfmodel/profile.hpp"
#include "perfmodel/test_allocations.hpp"

namespace bestride {
namespace {

using enum Collective;
constexpr std::int64_t KiB = 1024, MiB = 1024 * 1024;
constexpr Collective all_collectives[] = {allgather, allgatherv, broadcast, reduce_scatter, allreduce, reduce, gather, scatter, alltoall};

CollectiveShape on(Collective what, std::int64_t bytes, int nodes, int per_node, bool cyclic = false, bool blocking = true) {
  return {.what = what, .bytes = bytes, .nodes = nodes, .ranks = nodes * per_node, .most_on_a_node = per_node,
          .ring_entries = cyclic ? per_node : 1, .blocking = blocking};
}

/// Ethernet of so many Mbit/s.
LinkCosts ethernet(double mbit) {
  LinkCosts link = LinkCosts::built_in();
  link.wire_byte_s = link.stream_byte_s = 8 / (0.956e6 * mbit);
  return link;
}

double bytes_ratio(const CollectiveShape& shape) { return library_cost(shape, ethernet(200)).wire_bytes / wire_lower_bound(shape); }

const CollectiveChooser built_in(parameters_of({}));

TEST(CollectiveShape, NamesAreReadBack) {
  for (Collective what : all_collectives) {
    Collective read = allgather;
    ASSERT_TRUE(parse(name(what), &read));
    EXPECT_EQ(read, what);
  }
  Collective read = allgather;
  EXPECT_FALSE(parse("allgathers", &read));
}

TEST(CollectiveShape, OfATopology) {
  const int block[] = {0, 0, 0, 1, 1, 1}, cyclic[] = {0, 1, 0, 1, 0, 1}, mixed[] = {0, 1, 1, 0, 0, 2};
  const auto of = [](const auto& nodes) { return shape_of(allgather, 100, false, Topology(nodes)); };
  EXPECT_EQ(of(block).ring_entries, 1);
  EXPECT_EQ(of(cyclic).ring_entries, 3);
  EXPECT_EQ(of(mixed).ring_entries, 2) << "node 0 is entered before ranks 3 and 0";
  EXPECT_EQ(of(mixed).nodes, 3);
  EXPECT_EQ(of(mixed).ranks, 6);
  EXPECT_EQ(of(mixed).most_on_a_node, 3);
  EXPECT_EQ(of(mixed).least_on_a_node, 1);
  EXPECT_FALSE(of(mixed).blocking);
}

/// Bytes MPICH 4.0.2 put on the fullest link, counted, over the lower bound (4 MiB; 3 x 2: 1 MiB).
TEST(LibraryCost, PutsOnTheWireWhatWasCounted) {
  EXPECT_NEAR(bytes_ratio(on(allgather, 4 * MiB, 2, 2)), 1.50, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 4 * MiB, 4, 2)), 1.17, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 4 * MiB, 4, 2, true)), 2.34, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 4 * MiB, 2, 4)), 1.76, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 1 * MiB, 3, 2)), 1.26, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 1 * MiB, 3, 2, true)), 2.51, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allgather, 64 * KiB, 4, 2)), 2.05, 0.06);
  EXPECT_NEAR(bytes_ratio(on(allgather, 61 * KiB, 3, 2)), 2.32, 0.1);
  EXPECT_NEAR(bytes_ratio(on(allgather, 61 * KiB, 3, 2, true)), 2.57, 0.1);
  for (bool cyclic : {false, true}) {
    EXPECT_NEAR(bytes_ratio(on(reduce_scatter, 4 * MiB, 4, 2, cyclic)), 2.01, 0.02);
    EXPECT_NEAR(bytes_ratio(on(allreduce, 4 * MiB, 4, 2, cyclic)), 1.00, 0.02);
    EXPECT_NEAR(bytes_ratio(on(allreduce, 1 * MiB, 3, 2, cyclic)), 1.50, 0.02);
  }
  EXPECT_NEAR(bytes_ratio(on(reduce_scatter, 4 * MiB, 2, 4)), 4.01, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allreduce, 4 * MiB, 4, 2, false, false)), 1.00, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allreduce, 4 * MiB, 4, 2, true, false)), 2.01, 0.02);
  EXPECT_NEAR(bytes_ratio(on(allreduce, 1 * MiB, 3, 2, true, false)), 2.66, 0.35);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 2, 2)), 1.00, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 4, 2)), 1.63, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 4, 2, true)), 2.51, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 2, 4)), 1.38, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 1 * MiB, 3, 2)), 2.00, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 4, 2, false, false)), 2.00, 0.02);
  EXPECT_NEAR(bytes_ratio(on(broadcast, 4 * MiB, 2, 4, false, false)), 1.00, 0.02);
}

TEST(CollectiveCosts, NothingGoesBelowTheLowerBoundOrTheWire) {
  for (Collective what : all_collectives)
    for (int nodes : {2, 3, 4, 5, 8, 100})
      for (int per_node : {1, 2, 3, 4, 48})
        for (bool cyclic : {false, true})
          for (bool blocking : {false, true})
            for (std::int64_t bytes = 1; bytes <= 1024 * MiB; bytes *= 8) {
              const CollectiveShape shape = on(what, bytes, nodes, per_node, cyclic, blocking);
              const LinkCosts link = ethernet(1000);
              const double bound = wire_lower_bound(shape), wire = bound * link.wire_byte_s;
              const CollectiveCost library = library_cost(shape, link), hierarchical = hierarchical_cost(shape, link);
              ASSERT_GE(library.wire_bytes, bound) << name(what) << nodes << "x" << per_node << " " << bytes;
              // A reduce is combined everywhere first.
              ASSERT_DOUBLE_EQ(hierarchical.wire_bytes, what == Collective::reduce ? 2.0 * (nodes - 1) / nodes * bound : bound);
              ASSERT_GE(library.seconds, wire);
              ASSERT_GE(hierarchical.seconds, wire);
              ASSERT_TRUE(std::isfinite(library.seconds) && std::isfinite(hierarchical.seconds));
            }
}

TEST(CollectiveCosts, OfUnequalNodesTheEmptiestReceivesMost) {
  for (Collective what : {allgather, allgatherv, reduce_scatter}) {
    CollectiveShape shape = on(what, 6 * MiB, 3, 2);
    EXPECT_DOUBLE_EQ(hierarchical_cost(shape, ethernet(200)).wire_bytes, 4.0 * MiB);
    shape.most_on_a_node = 3;
    shape.least_on_a_node = 1;
    EXPECT_DOUBLE_EQ(hierarchical_cost(shape, ethernet(200)).wire_bytes, 5.0 * MiB);
  }
}

TEST(CollectiveCosts, MoreBytesNeverCostLess) {
  for (Collective what : all_collectives)
    for (int nodes : {2, 3, 8})
      for (int per_node : {1, 2, 7})
        for (bool blocking : {false, true}) {
          double hierarchical = 0, library = 0;
          for (std::int64_t bytes = 1; bytes < 256 * MiB; bytes += 1 + bytes / 5) {
            const CollectiveShape shape = on(what, bytes, nodes, per_node, false, blocking);
            const double now = hierarchical_cost(shape, LinkCosts::built_in()).seconds;
            EXPECT_GE(now, hierarchical * 0.9999) << name(what) << " " << nodes << "x" << per_node << " " << bytes;
            hierarchical = now;
            // Below, MPICH changes algorithms; what it changes to may be faster.
            if (bytes < 4 * MiB) continue;
            const double then = library_cost(shape, LinkCosts::built_in()).seconds;
            EXPECT_GE(then, library * 0.9999) << name(what) << " " << nodes << "x" << per_node << " " << bytes;
            library = then;
          }
        }
}

TEST(CollectiveCosts, TwiceTheRateIsHalfTheTimeOfALongCollective) {
  for (Collective what : all_collectives) {
    const CollectiveShape shape = on(what, 64 * MiB, 4, 2);
    EXPECT_NEAR(hierarchical_cost(shape, ethernet(100)).seconds / hierarchical_cost(shape, ethernet(50)).seconds, 0.5, 0.02) << name(what);
    EXPECT_NEAR(library_cost(shape, ethernet(100)).seconds / library_cost(shape, ethernet(50)).seconds, 0.5, 0.03) << name(what);
  }
}

TEST(CollectiveCosts, ChunksFollowTheRate) {
  const auto chunk = [](Collective what, std::int64_t bytes, double mbit) { return plan_chunks(on(what, bytes, 2, 2), ethernet(mbit)).chunk_bytes; };
  EXPECT_EQ(chunk(allgather, 64 * MiB, 50), 64 * KiB);
  EXPECT_EQ(chunk(allgather, 64 * MiB, 200), 128 * KiB);
  EXPECT_EQ(chunk(allgather, 64 * MiB, 1000), 1 * MiB);
  EXPECT_EQ(chunk(allgather, 64 * MiB, 100000), 4 * MiB);
  EXPECT_EQ(chunk(allgather, 128 * KiB, 1000), 32 * KiB) << "not more than a rank sends in a step";
  EXPECT_EQ(chunk(broadcast, 1 * MiB, 1000), 128 * KiB) << "a chain: a quarter of the slice";
  EXPECT_EQ(chunk(broadcast, 1, 1000), 4096);
  EXPECT_EQ(chunk(allgather, 1, 1000), 64);
  EXPECT_EQ(plan_chunks(on(allgather, std::int64_t{1} << 62, 2, 2), ethernet(1)).in_flight, 2);
}

TEST(CollectiveCosts, ChunksAreOfTheMeasuredLength) {
  LinkCosts link = ethernet(1000);
  link.piece_bytes = 16 * KiB;
  const auto plan = [&](Collective what, std::int64_t bytes) { return plan_chunks(on(what, bytes, 2, 2), link); };
  EXPECT_EQ(plan(allgather, 64 * MiB).chunk_bytes, 16 * KiB);
  EXPECT_EQ(plan(allgather, 64 * MiB).in_flight, 8);
  EXPECT_EQ(plan(broadcast, 1 * MiB).chunk_bytes, 16 * KiB);
  EXPECT_EQ(plan(allgather, 16 * KiB).chunk_bytes, 4096) << "not more than a rank sends in a step";
  EXPECT_EQ(plan(allgather, 16 * KiB).in_flight, 8);
  link.piece_bytes = 4 * MiB;
  EXPECT_EQ(plan(allgather, 64 * MiB).chunk_bytes, 1 * MiB) << "not more than the rate is good for";
  EXPECT_EQ(plan(allgather, 64 * MiB).in_flight, 2);
  link.piece_bytes = 32 * KiB;
  EXPECT_EQ(plan(allgather, 64 * MiB).in_flight, 4);
}

TEST(CollectiveChooser, OnOneNodeNothingIsChosen) {
  for (CollectiveMode mode : {CollectiveMode::automatic, CollectiveMode::library, CollectiveMode::hierarchical}) {
    const CollectiveChooser chooser(parameters_of({}, mode));
    for (Collective what : all_collectives)
      for (std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, 64 * KiB, 1024 * MiB})
        for (int ranks : {1, 2, 64}) EXPECT_FALSE(chooser.choose(on(what, bytes, 1, ranks)).hierarchical);
  }
}

TEST(CollectiveChooser, TakesTheHierarchyWhereItSavesBytesAndNotForShortOnes) {
  for (double mbit : {50.0, 200.0, 1000.0}) {
    CollectiveMeasurements measured;
    measured.link = ethernet(mbit);
    const CollectiveChooser chooser(parameters_of(measured));
    for (bool blocking : {false, true})
      for (auto [nodes, per_node] : {std::pair{2, 2}, {4, 2}, {3, 2}, {2, 4}}) {
        for (Collective what : {allgather, reduce_scatter})
          EXPECT_TRUE(chooser.choose(on(what, 4 * MiB, nodes, per_node, true, blocking)).hierarchical) << name(what) << nodes << "x" << per_node;
        EXPECT_TRUE(chooser.choose(on(reduce_scatter, 4 * MiB, nodes, per_node, false, blocking)).hierarchical);
        EXPECT_FALSE(chooser.choose(on(broadcast, 64, nodes, per_node, false, blocking)).hierarchical);
        EXPECT_FALSE(chooser.choose(on(gather, 64 * MiB, nodes, per_node, false, blocking)).hierarchical) << "MPI's own is at the bound";
      }
  }
  // The longer the vector, the better: once chosen, chosen for all that is longer.
  for (Collective what : {allgather, reduce_scatter, allreduce}) {
    bool chosen = false;
    for (std::int64_t bytes = 1 * MiB; bytes <= 1024 * MiB; bytes *= 2) {
      const bool now = built_in.choose(on(what, bytes, 4, 2, true)).hierarchical;
      EXPECT_TRUE(now || !chosen) << name(what) << " " << bytes;
      chosen = now;
    }
    EXPECT_TRUE(chosen) << name(what);
  }
}

TEST(CollectiveChooser, NeedsTheMargin) {
  int close = 0;
  for (Collective what : all_collectives)
    for (int nodes : {2, 3, 4, 16})
      for (int per_node : {1, 2, 8})
        for (std::int64_t bytes = 64; bytes < 256 * MiB; bytes = bytes * 5 / 4 + 1) {
          const CollectiveChoice choice = built_in.choose(on(what, bytes, nodes, per_node));
          EXPECT_EQ(choice.hierarchical, choice.hierarchical_s <= 0.95 * choice.library_s);
          close += !choice.hierarchical && choice.hierarchical_s < choice.library_s;
        }
  EXPECT_GT(close, 10) << "faster, but not by enough";
}

TEST(CollectiveChooser, AModeForcesWherePossible) {
  const CollectiveShape shortest = on(broadcast, 1, 2, 2), longest = on(reduce_scatter, 64 * MiB, 4, 2);
  EXPECT_TRUE(CollectiveChooser(parameters_of({}, collective_mode("hierarchical"))).choose(shortest).hierarchical);
  EXPECT_FALSE(CollectiveChooser(parameters_of({}, collective_mode("library"))).choose(longest).hierarchical);
  EXPECT_TRUE(CollectiveChooser(parameters_of({}, collective_mode("auto"))).choose(longest).hierarchical);
}

/// One setting in which both ways of what was predicted took these many times as long.
CollectiveMeasurements measured_as(double hierarchical, double library, int nodes = 2, int per_node = 2, Collective what = allgather) {
  CollectiveMeasurements measured;
  CollectiveSetting setting;
  setting.nodes = nodes, setting.ranks = nodes * per_node, setting.most_on_a_node = per_node;
  for (int size = 0; size < collective_sizes; size += 2) {
    const CollectiveShape shape = setting.shape(what, true, size);
    const auto at = static_cast<std::size_t>(size);
    setting.hierarchical[static_cast<std::size_t>(what)][1][at] = static_cast<float>(hierarchical * hierarchical_cost(shape, LinkCosts::built_in()).seconds);
    setting.library[static_cast<std::size_t>(what)][1][at] = static_cast<float>(library * library_cost(shape, LinkCosts::built_in()).seconds);
  }
  measured.settings.push_back(setting);
  return measured;
}

TEST(CollectiveChooser, MeasuredPointsCorrectThePrediction) {
  const CollectiveShape shape = on(allgather, 700 * KiB, 2, 2);
  const CollectiveChoice plain = built_in.choose(shape), twice = CollectiveChooser(parameters_of(measured_as(2, 3))).choose(shape);
  EXPECT_NEAR(twice.hierarchical_s / plain.hierarchical_s, 2, 1e-3);
  EXPECT_NEAR(twice.library_s / plain.library_s, 3, 1e-3);
  EXPECT_FALSE(CollectiveChooser(parameters_of(measured_as(9, 1))).choose(on(allgather, 64 * MiB, 2, 2)).hierarchical);
  EXPECT_TRUE(CollectiveChooser(parameters_of(measured_as(1, 9))).choose(on(allgatherv, 1 * MiB, 2, 2)).hierarchical) << "as allgather";
  for (const CollectiveShape& other : {on(allgather, 700 * KiB, 2, 2, false, false), on(broadcast, 700 * KiB, 2, 2)})
    EXPECT_DOUBLE_EQ(CollectiveChooser(parameters_of(measured_as(9, 1))).choose(other).hierarchical_s, built_in.choose(other).hierarchical_s);
}

TEST(CollectiveChooser, BetweenSizesRatiosAreMixedAndTheNearestSettingCounts) {
  CollectiveMeasurements measured = measured_as(2, 1, 2, 2);
  // Four times as long from one measured size to the next (16 times the bytes).
  measured.settings[0].hierarchical[0][1][4] *= 2;
  const double at_64K = 2, at_1M = 4;
  const auto ratio = [&](const CollectiveShape& shape) {
    return CollectiveChooser(parameters_of(measured)).choose(shape).hierarchical_s / built_in.choose(shape).hierarchical_s;
  };
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 2, 2)), at_64K, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 1 * MiB, 2, 2)), at_1M, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 256 * KiB, 2, 2)), (at_64K + at_1M) / 2, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 1, 2, 2)), at_64K, 1e-3) << "flat beyond the ends";
  measured.merge(measured_as(5, 1, 16, 4));
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 12, 4)), 5, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 3, 2)), at_64K, 1e-3);
}

TEST(CollectiveChooser, OfACorrectionOnlyWhatIsBeyondItsNoiseCounts) {
  const CollectiveShape shape = on(allgather, 1 * MiB, 2, 2);
  const auto with_noise = [&](double hierarchical, double library, float noise) {
    CollectiveMeasurements measured = measured_as(hierarchical, library);
    for (auto& size : measured.settings[0].noise[0][1]) size = noise;
    const CollectiveChoice choice = CollectiveChooser(parameters_of(measured)).choose(shape), plain = built_in.choose(shape);
    EXPECT_NEAR(choice.library_s / plain.library_s, library, 1e-3);
    return choice.hierarchical_s / choice.library_s / (plain.hierarchical_s / plain.library_s);
  };
  EXPECT_NEAR(with_noise(4, 2, 0), 2, 1e-3);
  EXPECT_NEAR(with_noise(4, 2, CollectiveSetting::unmeasured), 2, 1e-3) << "a file that has none";
  EXPECT_NEAR(with_noise(4, 2, 0.25f), 1.6, 1e-3);
  EXPECT_NEAR(with_noise(2, 4, 0.25f), 0.625, 1e-3);
  EXPECT_NEAR(with_noise(4, 2, 1.5f), 1, 1e-3) << "the prediction stands";
  EXPECT_NEAR(with_noise(2, 4, 1.5f), 1, 1e-3);
}

/// A setting of which every point took three times as long as predicted of the library, and the hierarchy was so many times faster.
CollectiveSetting everywhere_faster(double faster, float noise, int nodes, int per_node, const LinkCosts& link) {
  CollectiveSetting setting;
  setting.nodes = nodes, setting.ranks = nodes * per_node, setting.most_on_a_node = per_node;
  for (Collective what : all_collectives)
    for (int size = 0; size < collective_sizes; ++size) {
      const auto row = static_cast<std::size_t>(what), at = static_cast<std::size_t>(size);
      const double library = 3 * library_cost(setting.shape(what, true, size), link).seconds;
      setting.library[row][1][at] = static_cast<float>(library);
      setting.hierarchical[row][1][at] = static_cast<float>(library / faster);
      setting.noise[row][1][at] = noise;
    }
  return setting;
}

TEST(CollectiveChooser, AtMeasuredSizesTheHierarchyIsNeverTakenWhereItLoses) {
  int taken = 0, left = 0;
  for (auto [nodes, per_node] : {std::pair{2, 1}, {2, 2}, {3, 2}, {2, 4}, {8, 4}})
    for (double mbit : {50.0, 1000.0, 100000.0})
      for (float noise : {0.0f, 0.02f, 0.04f})
        for (double faster = 0.25; faster < 4; faster *= 1.04) {
          CollectiveMeasurements measured;
          measured.link = ethernet(mbit);
          measured.settings.push_back(everywhere_faster(faster, noise, nodes, per_node, measured.link));
          const CollectiveChooser chooser(parameters_of(measured));
          const double worst = (1 + static_cast<double>(noise)) / faster;  // of the library's time
          for (Collective what : all_collectives)
            for (int size = 0; size < collective_sizes; ++size) {
              const bool hierarchical = chooser.choose(measured.settings[0].shape(what, true, size)).hierarchical;
              ++(hierarchical ? taken : left);
              if (hierarchical) ASSERT_LE(worst, 1.03) << name(what) << nodes << "x" << per_node << " " << mbit << " " << size;
              else ASSERT_GE(worst, 0.87) << name(what) << nodes << "x" << per_node << " " << mbit << " " << size;
            }
        }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(left, 1000);
}

/// A setting in which the library's nonblocking form, too, was measured at every size, so many times faster than its blocking one.
CollectiveMeasurements three_ways(double hierarchy_faster, double tested_faster, float noise, int nodes, int per_node, double mbit) {
  CollectiveMeasurements measured;
  measured.link = ethernet(mbit);
  measured.settings.push_back(everywhere_faster(hierarchy_faster, noise, nodes, per_node, measured.link));
  CollectiveSetting& setting = measured.settings[0];
  for (std::size_t row = 0; row < collective_count; ++row)
    for (std::size_t at = 0; at < collective_sizes; ++at) {
      setting.tested[row][at] = static_cast<float>(static_cast<double>(setting.library[row][1][at]) / tested_faster);
      setting.tested_noise[row][at] = noise;
    }
  return measured;
}

TEST(CollectiveChooser, AtMeasuredSizesWhatIsTakenInPlaceOfTheBlockingFormIsTheBestOfThree) {
  int counts[3] = {};  // left as it is, tested, hierarchical
  for (auto [nodes, per_node] : {std::pair{2, 1}, {2, 2}, {3, 2}, {8, 4}})
    for (double mbit : {50.0, 1000.0, 100000.0})
      for (float noise : {0.0f, 0.02f, 0.04f})
        for (double hierarchy = 0.25; hierarchy < 4; hierarchy *= 1.09)
          for (double tested = 0.25; tested < 4; tested *= 1.04) {
            const CollectiveMeasurements measured = three_ways(hierarchy, tested, noise, nodes, per_node, mbit);
            const CollectiveChooser chooser(parameters_of(measured));
            const double best = std::min({1.0, 1 / hierarchy, 1 / tested});  // of the blocking form's time
            for (Collective what : all_collectives)
              for (int size = 0; size < collective_sizes; ++size) {
                const CollectiveChoice choice = chooser.choose(measured.settings[0].shape(what, true, size));
                const auto place = [&, nodes = nodes, per_node = per_node] {
                  return std::string(name(what)) + " " + std::to_string(nodes) + "x" + std::to_string(per_node) + ", size " + std::to_string(size) + ", " +
                         std::to_string(hierarchy) + ", " + std::to_string(tested);
                };
                ASSERT_FALSE(choice.hierarchical && choice.tested);
                ASSERT_NEAR(choice.tested_s * tested / choice.library_s, 1, 1e-4);
                ++counts[choice.hierarchical ? 2 : choice.tested];
                if (choice.hierarchical) ASSERT_LE(1 / hierarchy, 1.03 * best) << place();
                else if (choice.tested) ASSERT_LE(1 / tested, 1.03 * best) << place();
                else ASSERT_GE(best * (1 + static_cast<double>(noise)), 0.91) << place();  // neither faster by the margin and noise
              }
          }
  for (int count : counts) EXPECT_GT(count, 1000);
}

TEST(CollectiveChooser, TheNonblockingFormIsTakenOnlyWhereItWasMeasured) {
  CollectiveMeasurements measured = three_ways(0.5, 3, 0.01f, 2, 2, 200);
  const auto tested = [&](const CollectiveShape& shape, bool may_test = true) {
    const CollectiveChoice choice = CollectiveChooser(parameters_of(measured)).choose(shape, may_test);
    EXPECT_FALSE(choice.hierarchical);
    return choice.tested;
  };
  EXPECT_TRUE(tested(on(reduce, 1 * MiB, 2, 2)));
  EXPECT_TRUE(tested(on(reduce, 600 * KiB, 2, 2))) << "between two measured sizes";
  EXPECT_FALSE(tested(on(reduce, 1 * MiB, 2, 2), false)) << "where bits may differ";
  EXPECT_FALSE(tested(on(reduce, 1 * MiB, 2, 2, false, false))) << "not called so";
  EXPECT_FALSE(tested(on(reduce, 1 * MiB, 2, 2, true))) << "in another order";
  EXPECT_FALSE(tested(on(reduce, 1 * MiB, 2, 3)));
  EXPECT_FALSE(tested(on(reduce, 1 * MiB, 3, 2)));
  EXPECT_TRUE(tested(on(reduce, 2200, 2, 2)));
  EXPECT_FALSE(tested(on(reduce, 1024, 2, 2))) << "shorter than what was measured";
  EXPECT_TRUE(tested(on(reduce, 30 * MiB, 2, 2)));
  EXPECT_FALSE(tested(on(reduce, 64 * MiB, 2, 2))) << "longer";
  measured.settings[0].tested[static_cast<std::size_t>(reduce)][3] = CollectiveSetting::unmeasured;
  EXPECT_TRUE(tested(on(reduce, 256 * KiB, 2, 2))) << "a quick calibration has every second size";
  measured.settings[0].tested[static_cast<std::size_t>(reduce)][4] = CollectiveSetting::unmeasured;
  EXPECT_FALSE(tested(on(reduce, 256 * KiB, 2, 2)));
  measured.settings[0].tested[static_cast<std::size_t>(scatter)][4] *= 4;
  EXPECT_FALSE(tested(on(scatter, 600 * KiB, 2, 2))) << "it pays on one side only";
  EXPECT_TRUE(tested(on(scatter, 200 * KiB, 2, 2)));
  measured.settings[0].tested_noise[static_cast<std::size_t>(gather)].fill(CollectiveSetting::unmeasured);
  EXPECT_FALSE(tested(on(gather, 1 * MiB, 2, 2))) << "nobody knows how noisy it was";
  measured.settings[0].tested_noise[static_cast<std::size_t>(gather)].fill(2.5f);
  EXPECT_FALSE(tested(on(gather, 1 * MiB, 2, 2)));
  measured.settings[0].tested[static_cast<std::size_t>(allgather)].fill(CollectiveSetting::unmeasured);
  EXPECT_FALSE(tested(on(allgather, 1 * MiB, 2, 2)));
  for (const char* mode : {"library", "hierarchical"})
    EXPECT_FALSE(CollectiveChooser(parameters_of(measured, collective_mode(mode))).choose(on(reduce, 1 * MiB, 2, 2)).tested) << mode;
}

TEST(CollectiveChooser, WhatWasWaitingAtTheLongestMeasuredSizeIsNotMultiplied) {
  const CollectiveShape shape = on(allgather, 1 * MiB, 2, 2), longer = on(allgather, 16 * MiB, 2, 2), longest = on(allgather, 256 * MiB, 2, 2);
  CollectiveMeasurements measured = measured_as(5, 1);
  for (auto table : {&CollectiveSetting::hierarchical, &CollectiveSetting::library})
    (measured.settings[0].*table)[0][1][6] = CollectiveSetting::unmeasured;  // a run that ended before 16 MiB
  const CollectiveChooser chooser(parameters_of(measured));
  const auto ratio = [&](const CollectiveShape& at) { return chooser.choose(at).hierarchical_s / built_in.choose(at).hierarchical_s; };
  EXPECT_NEAR(ratio(shape), 5, 1e-3);
  EXPECT_NEAR(ratio(longer), 1.25, 1e-3) << "four predicted times of 1 MiB";
  EXPECT_NEAR(ratio(longest), 1.25, 1e-3);
}

TEST(CollectiveMeasurements, ANewerPointBringsItsNoise) {
  CollectiveMeasurements measured = measured_as(1, 1);
  measured.settings[0].noise[0][1].fill(0.5f);
  CollectiveMeasurements newer = measured_as(2, 1);
  newer.settings[0].noise[0][1][2] = 0.01f;
  newer.settings[0].library[0][1][4] = newer.settings[0].hierarchical[0][1][4] = CollectiveSetting::unmeasured;
  measured.merge(newer);
  EXPECT_EQ(measured.settings[0].noise[0][1][2], 0.01f);
  EXPECT_EQ(measured.settings[0].noise[0][1][4], 0.5f) << "not measured again";
  EXPECT_TRUE(std::isnan(measured.settings[0].noise[0][1][6])) << "measured again by who knows none";
}

TEST(CollectiveMeasurements, AllWaysOfAPointComeFromOneRun) {
  CollectiveMeasurements measured = three_ways(1, 2, 0.01f, 2, 2, 200), newer = three_ways(1, 4, 0.02f, 2, 2, 200);
  newer.settings[0].library[1][1][3] = CollectiveSetting::unmeasured;
  newer.settings[0].tested[1][4] = newer.settings[0].tested_noise[1][4] = CollectiveSetting::unmeasured;
  const CollectiveSetting before = measured.settings[0];
  measured.merge(newer);
  const CollectiveSetting& after = measured.settings[0];
  EXPECT_EQ(after.tested[1][2], newer.settings[0].tested[1][2]);
  EXPECT_EQ(after.tested_noise[1][2], 0.02f);
  EXPECT_EQ(after.tested[1][3], before.tested[1][3]) << "not measured again";
  EXPECT_TRUE(std::isnan(after.tested[1][4])) << "measured again two ways";
}

TEST(CollectiveMeasurements, TheNewestSettingsStay) {
  CollectiveMeasurements measured;
  for (int nodes : {2, 3, 4, 5, 3}) measured.merge(measured_as(nodes, 1, nodes, 2));
  ASSERT_EQ(measured.settings.size(), 3u);
  EXPECT_EQ(measured.settings[0].nodes, 4);
  EXPECT_EQ(measured.settings[1].nodes, 5);
  EXPECT_EQ(measured.settings[2].nodes, 3);
  CollectiveMeasurements none;
  EXPECT_FALSE(none.any());
  none.link.latency_s = 1e-6;
  EXPECT_TRUE(none.any());
  EXPECT_EQ(none.filled_link().latency_s, 1e-6);
  EXPECT_EQ(none.filled_link().copy_byte_s, LinkCosts::built_in().copy_byte_s);
  CollectiveMeasurements piece;
  piece.link.piece_bytes = 32 * KiB;
  EXPECT_TRUE(piece.any());
  piece.merge(none);
  EXPECT_EQ(piece.filled_link().piece_bytes, 32 * KiB) << "not measured again";
  none.merge(piece);
  EXPECT_EQ(none.link.piece_bytes, 32 * KiB);
}

TEST(CollectiveParameters, TravelAsBytesAndDecideAlike) {
  CollectiveMeasurements measured = three_ways(0.9, 1.3, 0.01f, 3, 2, 333);
  const CollectiveParameters sent = parameters_of(measured);
  ASSERT_TRUE(sent.intact());
  unsigned char wire[sizeof sent];
  std::memcpy(wire, &sent, sizeof sent);
  CollectiveParameters got;
  std::memcpy(&got, wire, sizeof got);
  ASSERT_TRUE(got.intact());
  const CollectiveChooser here(sent), there(got);
  for (Collective what : all_collectives)
    for (std::int64_t bytes = 1; bytes < 1024 * MiB; bytes *= 3) {
      const CollectiveShape shape = on(what, bytes, 3, 2);
      const CollectiveChoice a = here.choose(shape), b = there.choose(shape);
      EXPECT_EQ(a.hierarchical, b.hierarchical);
      EXPECT_EQ(a.tested, b.tested);
      EXPECT_EQ(a.tested_s, b.tested_s);
      EXPECT_EQ(a.hierarchical_s, b.hierarchical_s);
      EXPECT_EQ(a.library_s, b.library_s);
      EXPECT_EQ(a.chunk_bytes, b.chunk_bytes);
    }
}

TEST(CollectiveParameters, DamagedOnesLeaveAllToTheLibrary) {
  const CollectiveParameters good = parameters_of({});
  const CollectiveShape shape = on(reduce_scatter, 64 * MiB, 4, 2);
  ASSERT_TRUE(CollectiveChooser(good).choose(shape).hierarchical);
  for (std::size_t at = 0; at < sizeof good; ++at) {
    CollectiveParameters damaged;
    unsigned char bytes[sizeof good];
    std::memcpy(bytes, &good, sizeof good);
    bytes[at] ^= 4;
    std::memcpy(&damaged, bytes, sizeof bytes);
    ASSERT_FALSE(damaged.intact()) << at;
    ASSERT_FALSE(CollectiveChooser(damaged).choose(shape).hierarchical);
  }
  EXPECT_FALSE(CollectiveParameters{}.intact());
  CollectiveParameters sealed_nonsense = good;
  sealed_nonsense.link.wire_byte_s = 0;
  sealed_nonsense.seal();
  EXPECT_FALSE(sealed_nonsense.intact());
  for (std::int64_t piece : {std::int64_t{-1}, std::int64_t{1}, 8 * MiB}) {
    sealed_nonsense = good;
    sealed_nonsense.link.piece_bytes = piece;
    sealed_nonsense.seal();
    EXPECT_FALSE(sealed_nonsense.intact()) << piece;
  }
  sealed_nonsense = good;
  sealed_nonsense.settings = 4;
  sealed_nonsense.seal();
  EXPECT_FALSE(sealed_nonsense.intact());
}

TEST(CollectiveChooser, AllocatesNothing) {
  const CollectiveChooser chooser(parameters_of(three_ways(1.1, 1.2, 0.01f, 2, 2, 200)));
  const long before = allocations;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += chooser.choose(on(all_collectives[i % 9], 1000 * i, 2 + i % 50, 1 + i % 9)).library_s;
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0);
}

class CollectivesInAProfile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "bestride_collectives_" + std::to_string(::getpid());
    path_ = folder_ + "/profile.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// What load() says of a profile with these measurements, written without a check.
  std::string refusal(const CollectiveMeasurements& measured) const {
    EXPECT_TRUE(MachineProfile::from(Measurements(), {}, {}, measured).save(path_));
    const auto loaded = MachineProfile::load(path_);
    EXPECT_FALSE(loaded);
    return loaded ? "" : loaded.error().text;
  }
  std::string folder_, path_;
};

TEST_F(CollectivesInAProfile, ComeBackAsTheyWere) {
  CollectiveMeasurements before = measured_as(2, 3, 3, 2, reduce_scatter);
  before.link.latency_s = 12.34e-6;
  before.link.wire_byte_s = 41.8e-9;
  before.link.piece_bytes = 32 * KiB;
  before.settings[0].noise[static_cast<std::size_t>(reduce_scatter)][1][2] = 0.0312f;
  before.settings[0].tested[static_cast<std::size_t>(reduce_scatter)][2] = 0.00123f;
  before.settings[0].tested_noise[static_cast<std::size_t>(reduce_scatter)][2] = 0.0456f;
  ASSERT_TRUE(MachineProfile::from(Measurements(), {}, {}, before).save(path_));
  const auto profile = MachineProfile::load(path_);
  ASSERT_TRUE(profile) << profile.error().text;
  const CollectiveMeasurements& after = profile->collectives();
  EXPECT_NEAR(after.link.latency_s, 12.34e-6, 1e-11);
  EXPECT_NEAR(after.link.wire_byte_s, 41.8e-9, 1e-14);
  EXPECT_TRUE(std::isnan(after.link.copy_byte_s));
  EXPECT_EQ(after.link.piece_bytes, 32 * KiB);
  ASSERT_EQ(after.settings.size(), 1u);
  EXPECT_TRUE(after.settings[0].same_place(before.settings[0]));
  const auto what = static_cast<std::size_t>(reduce_scatter);
  EXPECT_NEAR(after.settings[0].noise[what][1][2], 0.0312, 1e-6);
  EXPECT_TRUE(std::isnan(after.settings[0].noise[what][1][4]));
  EXPECT_NEAR(after.settings[0].tested[what][2], 0.00123, 1e-7);
  EXPECT_NEAR(after.settings[0].tested_noise[what][2], 0.0456, 1e-6);
  EXPECT_TRUE(std::isnan(after.settings[0].tested[what][4]));
  EXPECT_TRUE(std::isnan(after.settings[0].tested_noise[what][4]));
  for (std::size_t size = 0; size < collective_sizes; ++size) {
    EXPECT_TRUE(std::isnan(after.settings[0].library[what][0][size]));
    if (size % 2) EXPECT_TRUE(std::isnan(after.settings[0].library[what][1][size]));
    else EXPECT_NEAR(after.settings[0].library[what][1][size] / before.settings[0].library[what][1][size], 1, 1e-3);
  }
  ASSERT_TRUE(MachineProfile::from(Measurements(), {}, {}, after).save(path_ + "2"));
  EXPECT_EQ(std::filesystem::file_size(path_), std::filesystem::file_size(path_ + "2"));
}

TEST_F(CollectivesInAProfile, ABadSectionIsRefusedWhole) {
  const auto expect_one_line = [](const std::string& text, const char* cause) {
    EXPECT_NE(text.find(cause), std::string::npos) << text;
    EXPECT_NE(text.find("the built-in profile is used"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  };
  CollectiveMeasurements bad = measured_as(1, 1);
  bad.link.copy_byte_s = 1e6;
  expect_one_line(refusal(bad), "'copy_byte' has a bad value");
  bad = measured_as(1, 1);
  bad.link.piece_bytes = 1000;
  expect_one_line(refusal(bad), "'piece' has a bad value");
  bad = measured_as(1, 1);
  bad.settings[0].nodes = 9;  // more than there are ranks
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].ring_entries = 3;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].library[0][1][2] = 1e9f;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].noise[0][1][2] = -1;
  expect_one_line(refusal(bad), "bad entry");
  bad = three_ways(1, 1, 0.01f, 2, 2, 200);
  bad.settings[0].tested[0][2] = 1e9f;
  expect_one_line(refusal(bad), "bad entry");
  bad = three_ways(1, 1, 0.01f, 2, 2, 200);
  bad.settings[0].tested_noise[0][2] = -1;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings.resize(4, bad.settings[0]);
  expect_one_line(refusal(bad), "more measured sets");
}

}  // namespace
}  // namespace bestride
