// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/one_node.hpp"

#include <gtest/gtest.h>

namespace bestride::inline perfmodel {
namespace {

constexpr OneNodeLimits mpich_4_0 = OneNodeLimits::built_in(OneNodeLibrary::mpich_4_0),
                        mpich = OneNodeLimits::built_in(OneNodeLibrary::mpich),
                        other = OneNodeLimits::built_in(OneNodeLibrary::other);
constexpr const OneNodeLimits* libraries[] = {&mpich_4_0, &mpich, &other};

TEST(OneNodeChoice, LibrariesByVersion) {
  EXPECT_EQ(one_node_library("MPICH 4.0.2 ch4:ucx"), OneNodeLibrary::mpich_4_0);
  for (const char* const version : {"MPICH 4.0.2 ch4:ofi", "MPICH 4.3.0 ch4:ucx", "MPICH 5.0.2 ch4:ucx ofi"})
    EXPECT_EQ(one_node_library(version), OneNodeLibrary::mpich);
  for (const char* const version : {"", "Intel(R) MPI Library 2021.18 for Linux* OS", "Open MPI v4.1.4"})
    EXPECT_EQ(one_node_library(version), OneNodeLibrary::other);
}

TEST(OneNodeChoice, EverythingIfCrowded) {
  for (const OneNodeLimits* const limits : libraries)
    for (int what = 0; what < collective_count; ++what)
      for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes *= 8)
        EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), bytes, 4, true, *limits),
                  OneNodeChoice::shared_memory);
}

/// In a call without data others may wait for this rank, if their sizes are different.
TEST(OneNodeChoice, NothingWithoutPeersButCallsWithoutData) {
  for (int what = 0; what < collective_count; ++what)
    for (const bool crowded : {false, true}) {
      EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), 0, 4, crowded, mpich_4_0),
                OneNodeChoice::shared_memory);
      EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), 1024, 1, crowded, mpich_4_0), OneNodeChoice::library);
    }
}

/// Shared memory; long alltoalls only with gaps, long reduce-scatters not at all.
TEST(OneNodeChoice, EachChoiceHasOneRangeOfSizes) {
  for (int what = 0; what < collective_count; ++what)
    for (const int ranks : {2, 3, 8, 64}) {
      const auto collective = static_cast<Collective>(what);
      const bool not_long = collective == Collective::reduce_scatter;
      const OneNodeChoice beyond = not_long ? OneNodeChoice::library : OneNodeChoice::if_any_has_gaps;
      int before = 0;  // 1: shared memory, 2: beyond
      for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7) {
        const OneNodeChoice choice = choose_on_one_node(collective, bytes, ranks, false, mpich_4_0);
        const int now = choice == OneNodeChoice::shared_memory ? 1 : choice == beyond && before > 0 ? 2 : 0;
        EXPECT_LE(before, now) << name(collective) << ' ' << bytes;
        before = now;
      }
      EXPECT_EQ(before, not_long || collective == Collective::alltoall ? 2 : 1);
    }
}

TEST(OneNodeChoice, PersistentCollectives) {
  constexpr std::int64_t kib = 1024;
  const auto alltoall = [](std::int64_t each, bool varying, bool gaps) {
    return persistent_on_one_node(Collective::alltoall, 4 * each, 4, false, varying, gaps);
  };
  for (const bool varying : {false, true}) {
    EXPECT_TRUE(alltoall(8, varying, true));
    EXPECT_TRUE(alltoall(1024 * kib, varying, true));
    EXPECT_FALSE(alltoall(8, varying, false));
    EXPECT_TRUE(alltoall(64 * kib, varying, false));
    EXPECT_EQ(alltoall(65 * kib, varying, false), varying);
    for (int what = 0; what < collective_count; ++what) {
      const auto collective = static_cast<Collective>(what);
      EXPECT_TRUE(persistent_on_one_node(collective, 1, 4, true, varying, false));
      EXPECT_FALSE(persistent_on_one_node(collective, 0, 4, true, varying, true));
      EXPECT_FALSE(persistent_on_one_node(collective, kib * kib, 1, true, varying, true));
    }
  }
}

/// One range of sizes, which ends only for alltoalls and reduce-scatters.
TEST(OneNodeChoice, PersistentNeighborCollectives) {
  EXPECT_TRUE(persistent_neighbors_on_one_node(1, true, false));
  EXPECT_FALSE(persistent_neighbors_on_one_node(1023, false, true));
  EXPECT_TRUE(persistent_neighbors_on_one_node(1024, false, true));
  EXPECT_TRUE(persistent_neighbors_on_one_node(1 << 30, false, true));
  EXPECT_FALSE(persistent_neighbors_on_one_node(8191, false, false));
  EXPECT_TRUE(persistent_neighbors_on_one_node(8192, false, false));
  EXPECT_TRUE(persistent_neighbors_on_one_node(32'768, false, false));
  EXPECT_FALSE(persistent_neighbors_on_one_node(32'769, false, false));
}

/// With other libraries nothing but what gained with a measured one of their kind.
TEST(OneNodeChoice, OtherLibraries) {
  constexpr std::int64_t kib = 1024;
  const auto shared = [](Collective what, std::int64_t bytes, const OneNodeLimits& limits) {
    return choose_on_one_node(what, bytes, 2, false, limits) == OneNodeChoice::shared_memory;
  };
  for (const OneNodeLimits* const limits : {&mpich, &other}) {
    for (int what = 0; what < collective_count; ++what)
      for (std::int64_t bytes = 0; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7)
        EXPECT_FALSE(nonblocking_on_one_node(static_cast<Collective>(what), bytes, 2, false, *limits));
    EXPECT_FALSE(shared(Collective::broadcast, kib, *limits));
    EXPECT_FALSE(shared(Collective::allreduce, kib, *limits));
    EXPECT_TRUE(shared(Collective::alltoall, 2 * kib, *limits));
    EXPECT_EQ(choose_on_one_node(Collective::alltoall, 1024 * kib, 2, false, *limits), OneNodeChoice::if_any_has_gaps);
  }
  for (const Collective what : {Collective::gather, Collective::allgatherv, Collective::allreduce}) {
    EXPECT_TRUE(shared(what, 64 * kib, mpich));
    EXPECT_FALSE(shared(what, 64 * kib, other));
  }
  EXPECT_TRUE(varying_alltoall_on_one_node(64 * kib, false, false, mpich));
  EXPECT_FALSE(varying_alltoall_on_one_node(64 * kib, false, false, other));
  EXPECT_TRUE(varying_alltoall_on_one_node(64 * kib, true, false, other));
}

/// Every size that is chosen is among those that may be.
TEST(OneNodeChoice, SizesIncludeWhatIsChosen) {
  OneNodeLimits measured = other;
  measured.blocking.fill({64, 4096});
  measured.nonblocking.fill({64, 4096});
  for (const OneNodeLimits* const limits : {&mpich_4_0, &mpich, &other, static_cast<const OneNodeLimits*>(&measured)})
    for (int what = 0; what < collective_count; ++what)
      for (const int ranks : {1, 2, 3, 64})
        for (const bool always : {false, true}) {
          const auto collective = static_cast<Collective>(what);
          const OneNodeBounds sizes = sizes_on_one_node(collective, true, ranks, always, *limits);
          for (std::int64_t bytes = 0; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7)
            EXPECT_EQ(choose_on_one_node(collective, bytes, ranks, always, *limits) != OneNodeChoice::library,
                      sizes.include(bytes))
                << name(collective) << ' ' << bytes << ' ' << ranks;
        }
  const auto shared = [&](Collective what, std::int64_t bytes) {
    return choose_on_one_node(what, bytes, 3, false, measured) == OneNodeChoice::shared_memory;
  };
  EXPECT_FALSE(shared(Collective::gather, 3 * 63 + 2));
  EXPECT_TRUE(shared(Collective::gather, 3 * 64));
  EXPECT_TRUE(shared(Collective::gather, 3 * 4096 + 2));
  EXPECT_FALSE(shared(Collective::gather, 3 * 4097));
  EXPECT_FALSE(shared(Collective::allreduce, 63));
  EXPECT_TRUE(shared(Collective::allreduce, 64));
  EXPECT_TRUE(shared(Collective::allreduce, 4096));
  EXPECT_FALSE(shared(Collective::allreduce, 4097));
}

TEST(OneNodeChoice, NonblockingCollectives) {
  const OneNodeLimits& limits = mpich_4_0;
  for (int what = 0; what < collective_count; ++what)
    for (const int ranks : {1, 2, 3, 64})
      for (const bool always : {false, true}) {
        const auto collective = static_cast<Collective>(what);
        const bool ends = collective == Collective::alltoall || collective == Collective::reduce_scatter;
        bool before = false, ended = false;
        EXPECT_FALSE(nonblocking_on_one_node(collective, 0, ranks, always, limits));
        for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7) {
          const bool shares = nonblocking_on_one_node(collective, bytes, ranks, always, limits);
          EXPECT_TRUE(ranks > 1 || !shares);
          EXPECT_TRUE(ranks == 1 || !always || shares);
          EXPECT_EQ(shares, sizes_on_one_node(collective, false, ranks, always, limits).include(bytes));
          EXPECT_FALSE(shares && ended) << name(collective) << ' ' << bytes;
          ended = ended || (before && !shares);
          before = shares;
        }
        EXPECT_EQ(ended, ends && ranks > 1 && !always);
      }
}

TEST(AskingInterval, DoublesWhileItIsInVain) {
  AskingInterval interval;
  const auto skipped = [&] {
    int calls = 0;
    while (!interval.asks()) ++calls;
    return calls;
  };
  EXPECT_EQ(skipped(), 0);
  for (const int expected : {1, 2, 4, 8, 16, 16, 16}) {
    interval.answered(true);
    EXPECT_EQ(skipped(), expected);
  }
  interval.answered(false);
  EXPECT_EQ(skipped(), 0);
  EXPECT_EQ(skipped(), 0);
  interval.answered(true);
  EXPECT_EQ(skipped(), 1);
}

}  // namespace
}  // namespace bestride::inline perfmodel
