// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/one_node.hpp"

#include <gtest/gtest.h>

namespace bestride::inline perfmodel {
namespace {

constexpr OneNodeLibrary libraries[] = {OneNodeLibrary::mpich_4_0, OneNodeLibrary::mpich, OneNodeLibrary::other};

TEST(OneNodeChoice, LibrariesByVersion) {
  EXPECT_EQ(one_node_library("MPICH 4.0.2 ch4:ucx"), OneNodeLibrary::mpich_4_0);
  for (const char* const version : {"MPICH 4.0.2 ch4:ofi", "MPICH 4.3.0 ch4:ucx", "MPICH 5.0.2 ch4:ucx ofi"})
    EXPECT_EQ(one_node_library(version), OneNodeLibrary::mpich);
  for (const char* const version : {"", "Intel(R) MPI Library 2021.18 for Linux* OS", "Open MPI v4.1.4"})
    EXPECT_EQ(one_node_library(version), OneNodeLibrary::other);
}

TEST(OneNodeChoice, EverythingIfCrowded) {
  for (const OneNodeLibrary library : libraries)
    for (int what = 0; what < collective_count; ++what)
      for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes *= 8)
        EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), bytes, 4, true, library),
                  OneNodeChoice::shared_memory);
}

/// In a call without data others may wait for this rank, if their sizes are different.
TEST(OneNodeChoice, NothingWithoutPeersButCallsWithoutData) {
  for (int what = 0; what < collective_count; ++what)
    for (const bool crowded : {false, true}) {
      EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), 0, 4, crowded, OneNodeLibrary::mpich_4_0),
                OneNodeChoice::shared_memory);
      EXPECT_EQ(choose_on_one_node(static_cast<Collective>(what), 1024, 1, crowded, OneNodeLibrary::mpich_4_0),
                OneNodeChoice::library);
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
        const OneNodeChoice choice = choose_on_one_node(collective, bytes, ranks, false, OneNodeLibrary::mpich_4_0);
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
TEST(OneNodeChoice, PersistentNeighbourCollectives) {
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
  const auto shared = [](Collective what, std::int64_t bytes, OneNodeLibrary library) {
    return choose_on_one_node(what, bytes, 2, false, library) == OneNodeChoice::shared_memory;
  };
  for (const OneNodeLibrary library : {OneNodeLibrary::mpich, OneNodeLibrary::other}) {
    for (std::int64_t bytes = 0; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7)
      EXPECT_FALSE(nonblocking_on_one_node(Collective::alltoall, bytes, 2, false, library));
    for (int what = 0; what < collective_count; ++what)
      EXPECT_TRUE(shared(static_cast<Collective>(what), kib, library));
    EXPECT_FALSE(shared(Collective::broadcast, 16 * kib, library));
    EXPECT_TRUE(shared(Collective::alltoall, 16 * kib, library));
    EXPECT_TRUE(shared(Collective::scatter, 1024 * kib, library));
  }
  EXPECT_TRUE(shared(Collective::gather, 64 * kib, OneNodeLibrary::mpich));
  EXPECT_FALSE(shared(Collective::gather, 64 * kib, OneNodeLibrary::other));
  EXPECT_TRUE(shared(Collective::allreduce, 64 * kib, OneNodeLibrary::mpich));
  EXPECT_FALSE(shared(Collective::allreduce, 64 * kib, OneNodeLibrary::other));
  EXPECT_EQ(choose_on_one_node(Collective::alltoall, 1024 * kib, 2, false, OneNodeLibrary::other),
            OneNodeChoice::if_any_has_gaps);
}

TEST(OneNodeChoice, NonblockingCollectives) {
  constexpr OneNodeLibrary library = OneNodeLibrary::mpich_4_0;
  for (int what = 0; what < collective_count; ++what)
    for (const int ranks : {1, 2, 3, 64})
      for (const bool always : {false, true}) {
        const auto collective = static_cast<Collective>(what);
        const bool ends = collective == Collective::alltoall || collective == Collective::reduce_scatter;
        bool before = false, ended = false;
        EXPECT_FALSE(nonblocking_on_one_node(collective, 0, ranks, always, library));
        for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 40; bytes += 1 + bytes / 7) {
          const bool shares = nonblocking_on_one_node(collective, bytes, ranks, always, library);
          EXPECT_TRUE(ranks > 1 || !shares);
          EXPECT_TRUE(ranks == 1 || !always || shares);
          EXPECT_TRUE(!shares || bytes >= least_on_one_node(collective, false, ranks, always, library));
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
