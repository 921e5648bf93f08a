// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/choice.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "perfmodel/choose/test_allocations.hpp"
#include "perfmodel/collective/test_values.hpp"

namespace bestride::inline perfmodel {
namespace {

const CollectiveChooser built_in(parameters_of({}));

TEST(CollectiveChooser, LeavesOneNodeToTheLibrary) {
  for (CollectiveMode mode : {CollectiveMode::automatic, CollectiveMode::library, CollectiveMode::hierarchical}) {
    const CollectiveChooser chooser(parameters_of({}, mode));
    for (Collective what : all_collectives)
      for (std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, 64 * KiB, 1024 * MiB})
        for (int ranks : {1, 2, 64}) EXPECT_FALSE(chooser.choose(on(what, bytes, 1, ranks)).hierarchical);
  }
}

TEST(CollectiveChooser, UsesTheHierarchyIfItSavesBytesAndNotForShortMessages) {
  for (double mbit : {50.0, 200.0, 1000.0}) {
    CollectiveMeasurements measured;
    measured.link = ethernet(mbit);
    const CollectiveChooser chooser(parameters_of(measured));
    for (bool blocking : {false, true})
      for (auto [nodes, per_node] : {std::pair{2, 2}, {4, 2}, {3, 2}, {2, 4}}) {
        for (Collective what : {allgather, reduce_scatter})
          EXPECT_TRUE(chooser.choose(on(what, 4 * MiB, nodes, per_node, true, blocking)).hierarchical)
              << name(what) << nodes << "x" << per_node;
        EXPECT_TRUE(chooser.choose(on(reduce_scatter, 4 * MiB, nodes, per_node, false, blocking)).hierarchical);
        EXPECT_FALSE(chooser.choose(on(broadcast, 64, nodes, per_node, false, blocking)).hierarchical);
        EXPECT_FALSE(chooser.choose(on(gather, 64 * MiB, nodes, per_node, false, blocking)).hierarchical)
            << "the MPI library reaches the bound";
      }
  }
  // If the hierarchy is chosen for a size, it is chosen for all larger sizes.
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
          EXPECT_EQ(choice.hierarchical, choice.has_advantage && choice.hierarchical_s <= 0.95 * choice.library_s);
          close += choice.has_advantage && !choice.hierarchical && choice.hierarchical_s < choice.library_s;
        }
  EXPECT_GT(close, 10) << "faster, but not by enough";
}

TEST(CollectiveChooser, APredictionDoesNotDecideIfNoBytesAreSaved) {
  for (std::int64_t bytes = 64; bytes <= 64 * MiB; bytes *= 4)
    for (bool blocking : {false, true}) {
      const auto chosen = [&](Collective what, int nodes, int per_node) {
        return built_in.choose(on(what, bytes, nodes, per_node, false, blocking)).hierarchical;
      };
      for (Collective what : all_collectives)
        EXPECT_FALSE(chosen(what, 2, 1)) << name(what) << ": between two ranks no library sends more than the least";
      for (int per_node : {1, 2, 8})
        for (Collective what : {gather, scatter, alltoall})
          // Short pieces of an alltoall pass several ranks.
          if (what != alltoall || bytes >= 16 * KiB) EXPECT_FALSE(chosen(what, 4, per_node)) << name(what);
    }
  EXPECT_TRUE(built_in.choose(on(broadcast, 1 * MiB, 4, 1)).hierarchical) << "a tree sends twice the bytes";
  EXPECT_TRUE(built_in.choose(on(allreduce, 1 * MiB, 2, 2)).hierarchical) << "sums overlap";
}

TEST(CollectiveChooser, AMeasurementWithOneRankPerNodeDecidesForSuchRanksOnly) {
  const CollectiveShape one_each = on(allreduce, 1 * MiB, 2, 1);
  const auto choice = [&](int per_node) {
    return CollectiveChooser(parameters_of(measured_as(0.2, 1, 2, per_node, allreduce))).choose(one_each);
  };
  EXPECT_TRUE(choice(1).hierarchical);
  EXPECT_FALSE(choice(2).hierarchical);
}

TEST(CollectiveChooser, ForcedModeIsUsedIfPossible) {
  const CollectiveShape shortest = on(broadcast, 1, 2, 2), longest = on(reduce_scatter, 64 * MiB, 4, 2);
  EXPECT_TRUE(CollectiveChooser(parameters_of({}, collective_mode("hierarchical"))).choose(shortest).hierarchical);
  EXPECT_FALSE(CollectiveChooser(parameters_of({}, collective_mode("library"))).choose(longest).hierarchical);
  EXPECT_TRUE(CollectiveChooser(parameters_of({}, collective_mode("auto"))).choose(longest).hierarchical);
}

TEST(CollectiveChooser, MeasuredPointsCorrectThePrediction) {
  const CollectiveShape shape = on(allgather, 700 * KiB, 2, 2);
  const CollectiveChoice plain = built_in.choose(shape),
                         twice = CollectiveChooser(parameters_of(measured_as(2, 3))).choose(shape);
  EXPECT_NEAR(twice.hierarchical_s / plain.hierarchical_s, 2, 1e-3);
  EXPECT_NEAR(twice.library_s / plain.library_s, 3, 1e-3);
  EXPECT_FALSE(CollectiveChooser(parameters_of(measured_as(9, 1))).choose(on(allgather, 64 * MiB, 2, 2)).hierarchical);
  EXPECT_TRUE(CollectiveChooser(parameters_of(measured_as(1, 9))).choose(on(allgatherv, 1 * MiB, 2, 2)).hierarchical)
      << "as allgather";
  for (const CollectiveShape& other : {on(allgather, 700 * KiB, 2, 2, false, false), on(broadcast, 700 * KiB, 2, 2)})
    EXPECT_DOUBLE_EQ(CollectiveChooser(parameters_of(measured_as(9, 1))).choose(other).hierarchical_s,
                     built_in.choose(other).hierarchical_s);
}

TEST(CollectiveChooser, InterpolatesRatiosAndUsesTheNearestSetting) {
  CollectiveMeasurements measured = measured_as(2, 1, 2, 2);
  // Four times as long from one measured size to the next (16 times the bytes).
  measured.settings[0].hierarchical[0][1][4] *= 2;
  const double at_64K = 2, at_1M = 4;
  const auto ratio = [&](const CollectiveShape& shape) {
    return CollectiveChooser(parameters_of(measured)).choose(shape).hierarchical_s /
           built_in.choose(shape).hierarchical_s;
  };
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 2, 2)), at_64K, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 1 * MiB, 2, 2)), at_1M, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 256 * KiB, 2, 2)), (at_64K + at_1M) / 2, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 1, 2, 2)), at_64K, 1e-3) << "constant outside the measured sizes";
  measured.merge(measured_as(5, 1, 16, 4));
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 12, 4)), 5, 1e-3);
  EXPECT_NEAR(ratio(on(allgather, 64 * KiB, 3, 2)), at_64K, 1e-3);
}

TEST(CollectiveChooser, IgnoresCorrectionsWithinTheNoise) {
  const CollectiveShape shape = on(allgather, 1 * MiB, 2, 2);
  const auto with_noise = [&](double hierarchical, double library, float noise) {
    CollectiveMeasurements measured = measured_as(hierarchical, library);
    for (auto& size : measured.settings[0].noise[0][1]) size = noise;
    const CollectiveChoice choice = CollectiveChooser(parameters_of(measured)).choose(shape),
                           plain = built_in.choose(shape);
    EXPECT_NEAR(choice.library_s / plain.library_s, library, 1e-3);
    return choice.hierarchical_s / choice.library_s / (plain.hierarchical_s / plain.library_s);
  };
  EXPECT_NEAR(with_noise(4, 2, 0), 2, 1e-3);
  EXPECT_NEAR(with_noise(4, 2, CollectiveSetting::unmeasured), 2, 1e-3) << "a file without noise";
  EXPECT_NEAR(with_noise(4, 2, 0.25f), 1.6, 1e-3);
  EXPECT_NEAR(with_noise(2, 4, 0.25f), 0.5, 1e-3) << "certainly faster";
  EXPECT_NEAR(with_noise(4, 2, 1.5f), 1, 1e-3) << "the prediction is not corrected";
  EXPECT_NEAR(with_noise(2, 4, 1.5f), 1, 1e-3);
}

TEST(CollectiveChooser, AtMeasuredSizesTheHierarchyNeverLoses) {
  int taken = 0, left = 0;
  for (auto [nodes, per_node] : {std::pair{2, 1}, {2, 2}, {3, 2}, {2, 4}, {8, 4}})
    for (double mbit : {50.0, 1000.0, 100000.0})
      for (float noise : {0.0f, 0.02f, 0.04f})
        for (double faster = 0.25; faster < 4; faster *= 1.04) {
          const CollectiveMeasurements measured = everywhere_faster(faster, noise, nodes, per_node, mbit);
          const CollectiveChooser chooser(parameters_of(measured));
          const double worst = (1 + static_cast<double>(noise)) / faster;  // relative to the library's time
          for (Collective what : all_collectives)
            for (int size = 0; size < collective_sizes; ++size) {
              const bool hierarchical = chooser.choose(measured.settings[0].shape(what, true, size)).hierarchical;
              ++(hierarchical ? taken : left);
              if (hierarchical)
                ASSERT_LE(worst, 1.03) << name(what) << nodes << "x" << per_node << " " << mbit << " " << size;
              else
                ASSERT_GE(worst, 0.87) << name(what) << nodes << "x" << per_node << " " << mbit << " " << size;
            }
        }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(left, 1000);
}

/// For any noise; otherwise the prediction alone would decide.
TEST(CollectiveChooser, DoesNotUseTheHierarchyIfMeasuredSlower) {
  int taken = 0, left = 0;
  for (float noise : {0.0f, 0.1f, 1.0f, 9.0f})
    for (double mbit : {50.0, 1000.0})
      for (bool blocking : {false, true})
        for (double faster = 0.25; faster < 4; faster *= 1.03) {
          CollectiveMeasurements measured = everywhere_faster(faster, noise, 3, 2, mbit);
          CollectiveSetting& setting = measured.settings[0];
          for (auto table : {&CollectiveSetting::hierarchical, &CollectiveSetting::library, &CollectiveSetting::noise})
            for (auto& forms : setting.*table) forms[0] = forms[1];
          const CollectiveChooser chooser(parameters_of(measured));
          for (Collective what : all_collectives)
            for (int size = 0; size < collective_sizes; ++size)
              for (bool exact : {false, true}) {
                CollectiveShape shape = setting.shape(what, blocking, size);
                const bool hierarchical = chooser.choose(shape, exact).hierarchical;
                ASSERT_TRUE(!hierarchical || faster > 1) << name(what) << " " << size << " " << noise;
                ++(hierarchical ? taken : left);
                // These were not measured, but their neighbors were.
                shape.bytes = shape.bytes * 3 / 2, shape.nodes = 4, shape.ranks = 8;
                ASSERT_TRUE(faster > 1 || !chooser.choose(shape, exact).hierarchical)
                    << name(what) << " " << size << " " << noise;
              }
        }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(left, 1000);
}

TEST(CollectiveChooser, UsesAMeasuredGainBeyondTheNoiseWithoutAPrediction) {
  const auto takes = [](double faster, float noise, const CollectiveShape& shape) {
    return CollectiveChooser(parameters_of(everywhere_faster(faster, noise, 2, 2, 200))).choose(shape).hierarchical;
  };
  const CollectiveShape shape = on(broadcast, 1 * MiB, 2, 2);
  EXPECT_TRUE(takes(1.36, 0.35f, shape));
  EXPECT_FALSE(takes(1.36, 0.38f, shape)) << "may be noise";
  EXPECT_FALSE(takes(1.02, 0.0f, shape)) << "less than the margin";
  EXPECT_TRUE(takes(1.36, 0.35f, on(broadcast, 512 * KiB, 2, 2))) << "between two such sizes";
}

TEST(CollectiveChooser, BetweenSizesBothMustFavorTheHierarchy) {
  CollectiveMeasurements measured = everywhere_faster(1.33, 0.01f, 2, 2, 200);
  measured.settings[0].hierarchical[static_cast<std::size_t>(allgather)][1][3] *= 1.4f;
  const CollectiveChooser chooser(parameters_of(measured));
  for (bool exact : {false, true}) {
    for (std::int64_t bytes : {65 * KiB, 256 * KiB, 1023 * KiB})
      EXPECT_FALSE(chooser.choose(on(allgather, bytes, 2, 2), exact).hierarchical) << bytes;
    for (std::int64_t bytes : {64 * KiB, 1 * MiB})
      EXPECT_TRUE(chooser.choose(on(allgather, bytes, 2, 2), exact).hierarchical) << bytes;
  }
}

TEST(CollectiveChooser, ExtrapolationDoesNotScaleWaitingTime) {
  const CollectiveShape shape = on(allgather, 1 * MiB, 2, 2), longer = on(allgather, 16 * MiB, 2, 2),
                        longest = on(allgather, 256 * MiB, 2, 2);
  CollectiveMeasurements measured = measured_as(5, 1);
  for (auto table : {&CollectiveSetting::hierarchical, &CollectiveSetting::library})
    (measured.settings[0].*table)[0][1][6] = CollectiveSetting::unmeasured;  // a run that ended before 16 MiB
  const CollectiveChooser chooser(parameters_of(measured));
  const auto ratio = [&](const CollectiveShape& at) {
    return chooser.choose(at).hierarchical_s / built_in.choose(at).hierarchical_s;
  };
  EXPECT_NEAR(ratio(shape), 5, 1e-3);
  EXPECT_NEAR(ratio(longer), 1.25, 1e-3) << "four times the predicted time of 1 MiB";
  EXPECT_NEAR(ratio(longest), 1.25, 1e-3);
}

TEST(CollectiveParameters, RoundTripGivesTheSameChoices) {
  CollectiveMeasurements measured = everywhere_faster(1.1, 0.01f, 3, 2, 333);
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
      EXPECT_EQ(a.hierarchical_s, b.hierarchical_s);
      EXPECT_EQ(a.library_s, b.library_s);
      EXPECT_EQ(a.chunk_bytes, b.chunk_bytes);
    }
}

TEST(CollectiveParameters, DamagedParametersLeaveAllToTheLibrary) {
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
  const CollectiveChooser chooser(parameters_of(everywhere_faster(1.1, 0.01f, 2, 2, 200)));
  const long before = allocations;
  double sum = 0;
  for (int i = 0; i < 1000; ++i)
    sum += chooser.choose(on(all_collectives[i % 9], 1000 * i, 2 + i % 50, 1 + i % 9)).library_s;
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace bestride::inline perfmodel
