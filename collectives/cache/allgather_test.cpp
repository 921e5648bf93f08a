// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/allgather.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>

#include "collectives/cache/cached_job.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t kibibyte = 1024;

std::vector<int> block_placement(int nodes, int each) {
  std::vector<int> placement;
  for (int i = 0; i < nodes * each; ++i) placement.push_back(i / each);
  return placement;
}

/// Any sequence of contents, shapes, budgets and missing arenas. The result always has every byte; a node never sends
/// more than a plain allgather and the agreement, and only the agreement if no data has changed.
TEST(CachedAllgather, EveryRankGetsEveryBlockInRandomSequences) {
  std::mt19937_64 random(21);
  CacheCounts all;
  for (int round = 0; round < test::repetitions(200); ++round) {
    const std::vector<int> nodes = random_placement(random);
    const std::int64_t most = std::vector<std::int64_t>{1, 100, 3000, 20000}[random() % 4];
    std::vector<std::vector<Content>> known;  // by shape
    std::vector<std::vector<std::int64_t>> shapes(1 + random() % 3);
    std::int64_t largest = 0;
    for (auto& shape : shapes) {
      const bool equal = random() % 2;
      std::int64_t sum = 0;
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        shape.push_back(equal ? most : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1)));
        sum += shape.back();
      }
      largest = std::max(largest, sum);
      known.push_back({random_content(shape, random)});
    }
    const std::int64_t budget =
        (largest + 64) * std::vector<std::int64_t>{1, 2, 3, 40}[random() % 4] / (random() % 8 ? 1 : 2);
    CachedJob job(nodes, random(), {budget, static_cast<std::int64_t>(random() % 3 ? 0 : 500), random() % 4 != 0});
    if (random() % 6 == 0)
      job.remove_arena_of_node(static_cast<int>(random() % static_cast<std::uint64_t>(job.job.topology().nodes())));
    if (random() % 6 == 0) job.remove_arena_of_rank(static_cast<int>(random() % nodes.size()));
    const std::uint64_t gaps = random() % 2 ? random() : 0;
    for (int call = 0; call < 24; ++call) {
      const std::size_t shape = random() % shapes.size();
      auto& contents = known[shape];
      Content content = contents[random() % 2 ? contents.size() - 1 : random() % contents.size()];
      switch (random() % 6) {
        case 0: content = random_content(shapes[shape], random); break;
        case 1:
          for (auto& block : content) change_words(block, 0.001 * static_cast<double>(random() % 1000), random);
          break;
        case 2: change_words(content[random() % content.size()], 0.1, random); break;
        default: break;
      }
      contents.push_back(content);
      const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096),
                                      static_cast<int>(1 + random() % 3)};
      const CacheCounts before = job.counts();
      ASSERT_TRUE(job.allgather(content, pipeline, [&](int rank) { return (gaps >> (rank + call) % 64 & 1) != 0; }))
          << "round " << round << " call " << call;
      const CacheCounts& now = job.counts();
      for (int node = 0; node < job.job.topology().nodes(); ++node) {
        const std::int64_t plain = job.plain(node, content);
        ASSERT_LE(job.sent(node), (now.hits > before.hits ? 0 : plain) + agreement)
            << "round " << round << " call " << call;
        if (now.hits == before.hits && now.deltas == before.deltas) {
          ASSERT_GE(job.sent(node), plain);
        }
      }
      for (int rank = 1; rank < job.job.ranks(); ++rank) {
        ASSERT_EQ(job.counts(rank).hits, now.hits);
        ASSERT_EQ(job.counts(rank).stores, now.stores);
      }
    }
    all.hits += job.counts().hits;
    all.deltas += job.counts().deltas;
    all.misses += job.counts().misses;
    all.paused += job.counts().paused;
  }
  // All cases occurred.
  EXPECT_GT(all.hits, test::repetitions(200u));
  EXPECT_GT(all.deltas, test::repetitions(200u));
  EXPECT_GT(all.misses, test::repetitions(200u));
  EXPECT_GT(all.paused, test::repetitions(20u));
}

/// A rank that is ahead never overwrites data that a neighbor still reads. The cache can hold one or two results, and
/// a rank may complete some calls early because it contributes nothing.
TEST(CachedAllgather, RanksMayRunAhead) {
  std::mt19937_64 random(29);
  CacheCounts all;
  for (int round = 0; round < test::repetitions(60); ++round) {
    const std::vector<int> nodes = random_placement(random);
    const std::int64_t most = random() % 2 ? 3 * OwnBlock::step / 2 : 5000;
    std::vector<std::vector<std::int64_t>> shapes(3);
    std::int64_t largest = 0;
    for (auto& shape : shapes) {
      std::int64_t sum = 0;
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        shape.push_back(random() % 2 ? 0
                                     : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) /
                                           static_cast<std::int64_t>(nodes.size()));
        sum += shape.back();
      }
      largest = std::max(largest, sum);
    }
    CachedJob job(nodes, random(), {(largest + 64) * (random() % 2 ? 1 : 2), 0, true}, 256 * kibibyte);
    std::vector<Content> contents;
    for (int call = 0; call < 16; ++call) {
      if (contents.empty() || random() % 3 == 0)
        contents.push_back(random_content(shapes[random() % 3], random));
      else
        contents.push_back(contents.back());
      if (random() % 4 == 0)
        for (auto& block : contents.back()) change_words(block, 0.1, random);
    }
    ASSERT_TRUE(job.allgathers(
        contents, {static_cast<std::int64_t>(1000 + random() % 100000), static_cast<int>(1 + random() % 2)}))
        << "round " << round;
    all.hits += job.counts().hits;
    all.deltas += job.counts().deltas;
  }
  EXPECT_GT(all.hits, 50u);
  EXPECT_GT(all.deltas, 20u);
}

/// The counted savings equal, to the byte, what the simulated network did not carry.
TEST(CachedAllgather, CountsSavedBytes) {
  std::mt19937_64 random(23);
  for (const std::vector<int>& nodes :
       {block_placement(3, 2), block_placement(2, 1), std::vector<int>{0, 1, 1, 2, 0, 1}}) {
    CachedJob job(nodes, 1, {1 << 20, 0, true});
    Content content = random_content(std::vector<std::int64_t>(nodes.size(), 20000), random);
    std::int64_t hit_bytes = 0, saved = 0;
    for (int call = 0; call < 8; ++call) {
      if (call % 2) change_words(content[static_cast<std::size_t>(call) % nodes.size()], 0.1, random);
      const CacheCounts before = job.counts();
      ASSERT_TRUE(job.allgather(content));
      std::int64_t unsent = 0;
      for (int node = 0; node < job.job.topology().nodes(); ++node) unsent += job.plain(node, content) - job.sent(node);
      // Subtract the messages of the agreement. A node sends one per doubling after the first result is stored.
      if (call > 0)
        unsent +=
            job.job.topology().nodes() * std::bit_width(static_cast<unsigned>(job.job.topology().nodes() - 1)) * 32;
      (job.counts().hits > before.hits ? hit_bytes : saved) += unsent;
    }
    std::uint64_t counted_hit_bytes = 0, counted_saved = 0;
    for (int rank = 0; rank < job.job.ranks(); ++rank) {
      counted_hit_bytes += job.counts(rank).hit_bytes;
      counted_saved += job.counts(rank).delta_saved_bytes;
    }
    EXPECT_EQ(job.counts().hits, 3u);
    EXPECT_EQ(job.counts().deltas, 4u);
    EXPECT_EQ(counted_hit_bytes, static_cast<std::uint64_t>(hit_bytes));
    EXPECT_EQ(counted_saved, static_cast<std::uint64_t>(saved));
    EXPECT_GT(saved, 0);
  }
}

TEST(CachedAllgather, UnchangedDataIsNotSent) {
  std::mt19937_64 random(22);
  CachedJob job(block_placement(4, 2), 1, {1 << 20, 0, true});
  const std::vector<std::int64_t> bytes(8, 10000);
  std::vector<Content> layers;
  for (int i = 0; i < 10; ++i) layers.push_back(random_content(bytes, random));
  for (const Content& layer : layers) {  // forward
    ASSERT_TRUE(job.allgather(layer));
    for (int node = 0; node < 4; ++node) EXPECT_GE(job.sent(node), job.plain(node, layer));
  }
  for (int micro = 0; micro < 3; ++micro) {
    for (std::size_t i = layers.size(); i-- > 0;) {  // backward
      ASSERT_TRUE(job.allgather(layers[i]));
      for (int node = 0; node < 4; ++node) EXPECT_EQ(job.sent(node), 64);
    }
    for (const Content& layer : layers) {
      ASSERT_TRUE(job.allgather(layer));
      for (int node = 0; node < 4; ++node) EXPECT_EQ(job.sent(node), 64);
    }
  }
  EXPECT_EQ(job.counts().hits, 60u);
}

TEST(CachedAllgather, DetectsAnyChangedByte) {
  std::mt19937_64 random(23);
  CachedJob job({0, 1, 0, 1, 2}, 2, {1 << 20, 0, false});
  const std::vector<std::int64_t> bytes{700, 0, 1, 3000, 64};
  const Content content = random_content(bytes, random);
  ASSERT_TRUE(job.allgather(content));
  for (std::size_t rank = 0; rank < bytes.size(); ++rank)
    for (const std::int64_t at : {std::int64_t{0}, bytes[rank] / 2, bytes[rank] - 1}) {
      if (bytes[rank] == 0) continue;
      Content changed = content;
      changed[rank][static_cast<std::size_t>(at)] ^= std::byte{1};
      const std::uint64_t hits = job.counts().hits;
      ASSERT_TRUE(job.allgather(changed));
      ASSERT_TRUE(job.allgather(content));
      ASSERT_GE(job.counts().hits, hits + 1);
    }
}

/// Blocks of several steps of hashing and comparing, contiguous on one rank and not on the other.
TEST(CachedAllgather, LongBlocks) {
  std::mt19937_64 random(24);
  CachedJob job({0, 1}, 3, {16 << 20, 0, true}, 256 * kibibyte);
  const std::int64_t bytes = OwnBlock::step * 2 + 12346;
  Content content = random_content({bytes, bytes}, random);
  for (int call = 0; call < 4; ++call)
    ASSERT_TRUE(job.allgather(content, PipelineSettings{}, [call](int rank) { return (rank + call) % 2 == 0; }));
  EXPECT_EQ(job.counts().hits, 3u);
  content[1].back() ^= std::byte{1};
  ASSERT_TRUE(job.allgather(content));
  EXPECT_EQ(job.counts().hits, 3u);
  EXPECT_EQ(job.counts().deltas, 1u);
  EXPECT_LE(job.sent(1), bytes / 1024 + kibibyte);
}

/// With a fraction f of words changed: at most 1/16 + f of the plain bytes and 1 KiB, and never more than 1.01 of
/// plain.
TEST(CachedAllgather, ChangeSendsItsWordsAndABitmap) {
  std::mt19937_64 random(25);
  for (const auto& placement : {block_placement(2, 1), std::vector<int>{0, 1, 2, 0, 1, 0}}) {
    CachedJob job(placement, random(), {64 << 20, 0, true}, 256 * kibibyte);
    const std::vector<std::int64_t> bytes(placement.size(), 300 * kibibyte + 2);
    const int nodes = job.job.topology().nodes();
    for (const double f : {0.0, 0.001, 0.02, 0.14, 0.42, 0.69, 0.92, 0.95, 1.0})
      for (const int how : {0, 1, 2}) {  // all words, one run of each block, one rank only
        Content content = random_content(bytes, random);
        ASSERT_TRUE(job.allgather(content));
        std::vector<std::int64_t> changed(static_cast<std::size_t>(nodes));
        for (std::size_t rank = 0; rank < content.size(); ++rank) {
          if (how == 2 && rank != 1) continue;
          auto& block = content[rank];
          std::vector<std::byte> run(
              block.begin(),
              block.begin() + static_cast<std::ptrdiff_t>(how == 1 ? 2 * static_cast<std::int64_t>(f * 150 * kibibyte)
                                                                   : static_cast<std::int64_t>(block.size())));
          changed[static_cast<std::size_t>(job.job.topology().node_of(static_cast<int>(rank)))] +=
              change_words(run, how == 1 ? 1.0 : f, random);
          std::copy(run.begin(), run.end(), block.begin());
        }
        const CacheCounts before = job.counts();
        ASSERT_TRUE(job.allgather(content));
        const bool any = changed != std::vector<std::int64_t>(static_cast<std::size_t>(nodes));
        EXPECT_EQ(job.counts().hits - before.hits, any ? 0u : 1u);
        for (int node = 0; node < nodes; ++node) {
          const std::int64_t plain = job.plain(node, content);
          std::int64_t new_bytes = 2 * changed[static_cast<std::size_t>(node)] * (nodes - 1);
          const RelayPlan plan = job.plan(content);
          for (const RelayedRange& relayed_range : plan.through(node))
            new_bytes +=
                std::min(2 * changed[static_cast<std::size_t>(relayed_range.node)], relayed_range.range.length()) *
                (nodes - 2);
          const double bound = static_cast<double>(plain) / 16 + static_cast<double>(new_bytes) + 1024;
          EXPECT_LE(static_cast<double>(job.sent(node)), std::min(bound, 1.01 * static_cast<double>(plain)))
              << "f " << f << " how " << how << " node " << node << " of " << nodes << " deltas "
              << job.counts().deltas - before.deltas;
        }
      }
  }
}

TEST(CachedAllgather, SlowlyChangingWeightsFitABudgetOfOneModelAndALayer) {
  std::mt19937_64 random(26);
  const std::vector<std::int64_t> bytes(6, 20000);
  CachedJob job(block_placement(3, 2), 4, {7 * (6 * 20000 + 64), 0, true});
  std::vector<Content> layers;
  for (int i = 0; i < 6; ++i) layers.push_back(random_content(bytes, random));
  for (int step = 0; step < 5; ++step) {
    const CacheCounts before = job.counts();
    for (const Content& layer : layers) ASSERT_TRUE(job.allgather(layer));
    EXPECT_EQ(job.counts().deltas - before.deltas, step ? 6u : 0u);
    for (std::size_t i = layers.size(); i-- > 0;) ASSERT_TRUE(job.allgather(layers[i]));
    EXPECT_EQ(job.counts().hits - before.hits, 6u);
    for (Content& layer : layers)
      for (auto& block : layer) change_words(block, 0.05, random);
  }
}

TEST(CachedAllgather, AlwaysNewContentIsNotCached) {
  std::mt19937_64 random(27);
  const std::vector<std::int64_t> bytes(4, 300);
  CachedJob job(block_placement(2, 2), 5, {4 * 1280, 0, true});
  int agreed = 0;
  for (int call = 0; call < 400; ++call) {
    const Content content = random_content(bytes, random);
    ASSERT_TRUE(job.allgather(content));
    agreed += job.sent(0) > job.plain(0, content);
  }
  // 12 looked up, 12 skipped, 12 looked up, 24 skipped, ...
  EXPECT_EQ(job.counts().stores, 60u);
  EXPECT_EQ(agreed, 59);
  EXPECT_EQ(job.counts().paused, 340u);
}

TEST(CachedAllgather, WithoutMemoryOnANodeOrRankThereAreNoHits) {
  std::mt19937_64 random(28);
  for (const bool whole_node : {true, false}) {
    CachedJob job(block_placement(3, 2), 6, {1 << 20, 0, true});
    if (whole_node)
      job.remove_arena_of_node(1);
    else
      job.remove_arena_of_rank(3);
    const Content content = random_content(std::vector<std::int64_t>(6, 5000), random);
    for (int call = 0; call < 5; ++call) {
      ASSERT_TRUE(job.allgather(content));
      for (int node = 0; node < 3; ++node) EXPECT_GE(job.sent(node), job.plain(node, content));
    }
    EXPECT_EQ(job.counts().hits + job.counts().deltas, 0u);
  }
}

/// The file ends in the middle of the second result: results before the end are found, results after it are not.
TEST(CachedAllgather, WithoutMorePagesOldEntriesAreStillFound) {
  std::mt19937_64 random(30);
  const std::int64_t block = 100000;
  CachedJob job({0, 0, 1, 1}, 7, {1 << 20, 0, true});
  const int file = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 2 * Arena::chunk), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);
  void* memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const int rank : {2, 3}) job.set_arena_of_rank(rank, Arena(static_cast<std::byte*>(memory), 1 << 20, file));
  const std::vector<std::int64_t> bytes(4, block);
  const Content first = random_content(bytes, random), second = random_content(bytes, random);
  testing::internal::CaptureStderr();
  for (int again = 0; again < 2; ++again)
    for (const Content* content : {&first, &second}) ASSERT_TRUE(job.allgather(*content));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no memory to keep results"), std::string::npos);
  EXPECT_EQ(job.counts().hits, 1u);
  EXPECT_GE(job.sent(0), job.plain(0, second));
  munmap(memory, 1 << 20);
  close(file);
}

}  // namespace
}  // namespace bestride::inline collectives
