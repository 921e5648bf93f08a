// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/one_node_measurements.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace bestride::inline perfmodel {
namespace {

/// Ratios of the library's time to ours at the first sizes; 0: not measured.
OneNodeCurve with(const std::vector<float>& gains) {
  OneNodeCurve curve;
  for (std::size_t i = 0; i < gains.size(); ++i)
    if (gains[i] > 0) curve.shared[i] = 1e-6f, curve.library[i] = gains[i] * 1e-6f;
  return curve;
}
std::size_t index_of(std::string_view id) {
  for (std::size_t i = 0; i < one_node_calls.size(); ++i)
    if (one_node_calls[i].id() == id) return i;
  ADD_FAILURE() << id;
  return 0;
}

TEST(OneNodeMeasurements, CallsHaveDistinctNames) {
  std::set<std::string> ids;
  for (const OneNodeCall& call : one_node_calls) EXPECT_TRUE(ids.insert(call.id()).second) << call.id();
  EXPECT_TRUE(ids.contains("barrier") && ids.contains("neighbor_alltoall") && ids.contains("allreduce") &&
              ids.contains("nonblocking_allreduce"));
}

TEST(OneNodeMeasurements, BoundsAreTheRunThatGainsMost) {
  constexpr std::int64_t unbounded = OneNodeBounds::unbounded;
  const auto bounds = [](const std::vector<float>& gains) { return with(gains).bounds(); };
  EXPECT_EQ(bounds({2, 2, 2, 2, 2, 2, 2, 2}), (OneNodeBounds{0, unbounded}));
  EXPECT_FALSE(bounds({0.5, 0.9, 1, 1.02f, 1, 1, 1, 1}).any()) << "within what two measurements differ by";
  EXPECT_FALSE(bounds({}).any());
  EXPECT_EQ(bounds({2, 2, 2, 1.5, 0.9f, 0.8f, 0.7f, 0.9f}), (OneNodeBounds{0, 4096}));
  EXPECT_EQ(bounds({0.9f, 0.9f, 0.9f, 0.9f, 1.2f, 1.5, 1.5, 2}), (OneNodeBounds{16'384, unbounded}));
  EXPECT_EQ(bounds({0.9f, 2, 2, 0.9f, 0.5, 0.5, 0.5, 0.5}), (OneNodeBounds{64, 512}));
  EXPECT_EQ(bounds({2, 2, 0.98f, 2, 2, 2, 2, 2}), (OneNodeBounds{0, unbounded})) << "one sample is not a gap";
  EXPECT_EQ(bounds({1.2f, 0.2f, 2, 2, 0.2f}), (OneNodeBounds{512, 4096})) << "a loss outweighs the gain before it";
  EXPECT_EQ(bounds({0, 2, 2}), (OneNodeBounds{64, 512})) << "nothing beyond what was measured";
  EXPECT_EQ(bounds({2, 0, 2, 2, 2, 2, 2, 2}), (OneNodeBounds{0, unbounded})) << "between measured sizes as there";
}

TEST(OneNodeMeasurements, LimitsReplaceTheBuiltInOnesOfMeasuredCalls) {
  const OneNodeLimits before = OneNodeLimits::built_in(OneNodeLibrary::other);
  const auto of = [](const OneNodeLimits::Table& table, Collective what) {
    return table[static_cast<std::size_t>(what)];
  };
  OneNodeMeasurements measured;
  EXPECT_EQ(limits_of(measured, before).blocking, before.blocking);
  measured.ranks = 2;
  measured.curves[index_of("allreduce")] = with({2, 2, 2, 2, 0.5});
  measured.curves[index_of("nonblocking_allgather")] = with({0.5, 0.5, 2, 2});
  measured.curves[index_of("barrier")] = with({2});
  measured.curves[index_of("neighbor_alltoall")] = with({2, 2, 0.9f, 0.5});
  OneNodeLimits limits = limits_of(measured, before);
  EXPECT_EQ(of(limits.blocking, Collective::allreduce), (OneNodeBounds{0, 4096}));
  EXPECT_EQ(of(limits.nonblocking, Collective::allgatherv), (OneNodeBounds{512, 4096}));
  EXPECT_EQ(of(limits.blocking, Collective::alltoall), of(before.blocking, Collective::alltoall)) << "not measured";
  EXPECT_TRUE(limits.barriers);
  EXPECT_FALSE(limits.neighbors) << "only if every size gains";
  EXPECT_FALSE(limits.varying);
  EXPECT_EQ(limits.requests, before.requests);
  for (const char* const id : {"allgather", "gather", "scatter", "neighbor_alltoall"})
    measured.curves[index_of(id)] = with({2, 2, 2, 2, 2, 2, 2, 2});
  limits = limits_of(measured, before);
  EXPECT_TRUE(limits.varying && limits.neighbors);
  measured.curves[index_of("scatter")] = with({2, 2, 0.5, 2, 2, 2, 2, 0.9f});
  EXPECT_FALSE(limits_of(measured, before).varying) << "members that know only their own sizes can't choose by them";
}

}  // namespace
}  // namespace bestride::inline perfmodel
