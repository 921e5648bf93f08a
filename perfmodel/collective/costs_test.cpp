// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/costs.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "perfmodel/collective/test_values.hpp"

namespace bestride::inline perfmodel {
namespace {

double bytes_ratio(const CollectiveShape& shape) {
  return library_cost(shape, ethernet(200)).wire_bytes / wire_lower_bound(shape);
}

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
  EXPECT_EQ(of(mixed).max_ranks_per_node, 3);
  EXPECT_EQ(of(mixed).min_ranks_per_node, 1);
  EXPECT_FALSE(of(mixed).blocking);
}

/// Counted bytes that MPICH 4.0.2 sends over the busiest link, relative to the lower bound (4 MiB; 3 x 2: 1 MiB).
TEST(LibraryCost, BytesMatchTheCountedOnes) {
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

TEST(CollectiveCosts, NeverBelowTheLowerBound) {
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
              // A reduce first reduces on all nodes.
              ASSERT_DOUBLE_EQ(hierarchical.wire_bytes,
                               what == Collective::reduce ? 2.0 * (nodes - 1) / nodes * bound : bound);
              ASSERT_GE(library.seconds, wire);
              ASSERT_GE(hierarchical.seconds, wire);
              ASSERT_TRUE(std::isfinite(library.seconds) && std::isfinite(hierarchical.seconds));
            }
}

TEST(CollectiveCosts, SmallestOfUnequalNodesReceivesMost) {
  for (Collective what : {allgather, allgatherv, reduce_scatter}) {
    CollectiveShape shape = on(what, 6 * MiB, 3, 2);
    EXPECT_DOUBLE_EQ(hierarchical_cost(shape, ethernet(200)).wire_bytes, 4.0 * MiB);
    shape.max_ranks_per_node = 3;
    shape.min_ranks_per_node = 1;
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
            // Below this size MPICH changes algorithms, and the next one may be faster.
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
    EXPECT_NEAR(hierarchical_cost(shape, ethernet(100)).seconds / hierarchical_cost(shape, ethernet(50)).seconds, 0.5,
                0.02)
        << name(what);
    EXPECT_NEAR(library_cost(shape, ethernet(100)).seconds / library_cost(shape, ethernet(50)).seconds, 0.5, 0.03)
        << name(what);
  }
}

TEST(CollectiveCosts, ChunksFollowTheRate) {
  const auto chunk = [](Collective what, std::int64_t bytes, double mbit) {
    return plan_chunks(on(what, bytes, 2, 2), ethernet(mbit)).chunk_bytes;
  };
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

TEST(CollectiveCosts, ChunksHaveTheMeasuredLength) {
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

}  // namespace
}  // namespace bestride::inline perfmodel
