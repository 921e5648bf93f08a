// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/quantized_allgather.hpp"

#include <gtest/gtest.h>

#include <set>

#include "collectives/cache/cached_job.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

using test::all_bits;
using test::all_formats;

constexpr Coding float_codes{NumberFormat::float32, CodeBits::int8};

/// Including NaN and infinities.
Content random_numbers_of(const std::vector<std::int64_t>& counts, NumberFormat format, std::mt19937_64& random) {
  Content content;
  for (const std::int64_t count : counts) content.push_back(random_numbers(count, format, false, random));
  return content;
}

/// Any sequence of contents, codings, plain calls in between, budgets and missing arenas. The result always has the
/// bits of a quantized allgather without a cache, and only the agreement crosses the network if no codes have changed.
TEST(CachedQuantizedAllgather, SameBitsInRandomSequences) {
  std::mt19937_64 random(41);
  CacheCounts all;
  for (int round = 0; round < test::repetitions(150); ++round) {
    const std::vector<int> nodes = random_placement(random);
    const std::vector<std::int64_t> counts = random_sizes(random, nodes.size(), {1, 255, 700, 5000});
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) sum += 8 * count;
    CachedJob job(nodes, random(), {(sum + 64) * static_cast<std::int64_t>(1 + random() % 4), 0, random() % 2 == 0});
    if (random() % 6 == 0) job.remove_arena_of_rank(static_cast<int>(random() % nodes.size()));
    const std::uint64_t gaps = random() % 2 ? random() : 0;
    struct Known {
      Content content;
      Coding coding;
    };
    std::vector<Known> known;
    const std::uint64_t new_in = round % 4 ? 4 : 1;  // always new in every fourth round
    for (int call = 0; call < 24; ++call) {
      Known next;
      if (known.empty() || random() % new_in == 0) {
        next.coding = {all_formats[new_in == 1 ? 0 : random() % 4], all_bits[random() % 2]};
        next.content = random_numbers_of(counts, next.coding.format, random);
      } else {
        next = known[random() % known.size()];
        if (random() % 4 == 0) next.coding.bits = all_bits[random() % 2];
        if (random() % 4 == 0)
          change_words(next.content[random() % counts.size()], 0.001 * static_cast<double>(random() % 1000), random);
      }
      known.push_back(next);
      const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096),
                                      static_cast<int>(1 + random() % 3)};
      const auto derived = [&](int rank) { return (gaps >> (rank + call) % 64 & 1) != 0; };
      const CacheCounts before = job.counts();
      if (random() % 5 == 0) {
        ASSERT_TRUE(job.allgather(next.content, pipeline, derived)) << "round " << round << " call " << call;
        continue;
      }
      ASSERT_TRUE(job.allgather(next.content, next.coding, pipeline, derived)) << "round " << round << " call " << call;
      const CacheCounts& now = job.counts();
      EXPECT_EQ(now.deltas, before.deltas);
      for (int node = 0; node < job.job.topology().nodes(); ++node) {
        const std::int64_t coded = job.coded(node, next.content, next.coding);
        if (now.hits > before.hits)
          ASSERT_LE(job.sent(node), agreement) << "round " << round << " call " << call;
        else
          ASSERT_GE(job.sent(node), coded);
        ASSERT_LE(job.sent(node), coded + agreement);
      }
      for (int rank = 1; rank < job.job.ranks(); ++rank) ASSERT_EQ(job.counts(rank).hits, now.hits);
    }
    all.hits += job.counts().hits;
    all.misses += job.counts().misses;
    all.paused += job.counts().paused;
  }
  // All cases occurred.
  EXPECT_GT(all.hits, test::repetitions(200u));
  EXPECT_GT(all.misses, test::repetitions(200u));
  EXPECT_GT(all.paused, test::repetitions(20u) < 20u ? 0u : 20u);  // rare
}

TEST(CachedQuantizedAllgather, UnchangedDataIsNotSent) {
  std::mt19937_64 random(42);
  for (const NumberFormat format : all_formats)
    for (const CodeBits bits : all_bits) {
      const Coding coding{format, bits};
      CachedJob job({0, 0, 1, 1, 2, 3}, 1, {1 << 20, 0, true});
      std::vector<Content> layers;
      for (int i = 0; i < 5; ++i) layers.push_back(random_numbers_of({3000, 100, 0, 2999, 3000, 1}, format, random));
      for (const Content& layer : layers) {  // forward
        ASSERT_TRUE(job.allgather(layer, coding));
        for (int node = 0; node < 4; ++node) EXPECT_GE(job.sent(node), job.coded(node, layer, coding));
      }
      for (std::size_t i = layers.size(); i-- > 0;) {  // backward
        ASSERT_TRUE(job.allgather(layers[i], coding));
        for (int node = 0; node < 4; ++node) EXPECT_EQ(job.sent(node), 64);
      }
      EXPECT_EQ(job.counts().hits, 5u);
    }
}

TEST(CachedQuantizedAllgather, DetectsOneChangedBit) {
  std::mt19937_64 random(43);
  CachedJob job({0, 1, 0, 1, 2}, 2, {1 << 20, 0, false});
  const std::vector<std::int64_t> counts{700, 0, 1, 3000, 64};
  const Content content = random_numbers_of(counts, NumberFormat::float32, random);
  ASSERT_TRUE(job.allgather(content, float_codes));
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    for (const std::int64_t at : std::set{std::int64_t{0}, counts[rank] / 2, counts[rank] - 1}) {
      if (counts[rank] == 0) continue;
      Content changed = content;
      changed[rank][static_cast<std::size_t>(4 * at + 3)] ^= std::byte{0x40};  // of the exponent
      const std::uint64_t hits = job.counts().hits;
      ASSERT_TRUE(job.allgather(changed, float_codes));
      EXPECT_EQ(job.counts().hits, hits);
      ASSERT_TRUE(job.allgather(content, float_codes));
      EXPECT_EQ(job.counts().hits, hits + 1);
    }
}

/// Changes the last bit of a number that is far from the largest: its code stays the same.
TEST(CachedQuantizedAllgather, ChangeBelowQuantizationIsAHit) {
  CachedJob job({0, 1}, 3, {1 << 20, 0, true});
  Content content(2);
  for (auto& block : content)
    for (int i = 0; i < 1000; ++i) {
      const float number = i % 256 == 0 ? 127.0f : 3.0f;
      const auto* bytes = reinterpret_cast<const std::byte*>(&number);
      block.insert(block.end(), bytes, bytes + sizeof number);
    }
  ASSERT_TRUE(job.allgather(content, float_codes));
  content[1][4 * 77] ^= std::byte{1};
  ASSERT_TRUE(job.allgather(content, float_codes));
  EXPECT_EQ(job.counts().hits, 1u);
}

/// The same codes of the same size, read as other numbers: in another format, and as plain bytes.
TEST(CachedQuantizedAllgather, ResultsOfAnotherFormatAreNotFound) {
  std::mt19937_64 random(44);
  CachedJob job({0, 1}, 4, {1 << 20, 0, true});
  const Content halves = random_numbers_of({512, 512}, NumberFormat::bfloat16, random);
  const Coding bfloat16{NumberFormat::bfloat16, CodeBits::int8}, float16{NumberFormat::float16, CodeBits::int8};
  Content codes;
  for (const auto& block : halves) {
    codes.emplace_back(static_cast<std::size_t>(coded_bytes(block, bfloat16)));
    quantize(block.data(), bfloat16.format, 512, bfloat16.bits, codes.back().data());
  }
  ASSERT_TRUE(job.allgather(halves, bfloat16));
  ASSERT_TRUE(job.allgather(codes));
  ASSERT_TRUE(job.allgather(halves, float16));
  EXPECT_EQ(job.counts().hits, 0u);
  ASSERT_TRUE(job.allgather(halves, bfloat16));
  ASSERT_TRUE(job.allgather(codes));
  ASSERT_TRUE(job.allgather(halves, float16));
  EXPECT_EQ(job.counts().hits, 3u);
}

/// Blocks of several runs, steps of hashing and parts of decoding, contiguous on one rank and not on the other.
TEST(CachedQuantizedAllgather, LongBlocks) {
  std::mt19937_64 random(45);
  for (const Coding coding :
       {Coding{NumberFormat::float32, CodeBits::int8}, Coding{NumberFormat::float64, CodeBits::int4}}) {
    CachedJob job({0, 1}, 5, {16 << 20, 0, true}, 256 * 1024);
    Content content = random_numbers_of({5'000'003, 2'900'001}, coding.format, random);
    for (int call = 0; call < 3; ++call)
      ASSERT_TRUE(
          job.allgather(content, coding, PipelineSettings{}, [call](int rank) { return (rank + call) % 2 == 0; }));
    EXPECT_EQ(job.counts().hits, 2u);
    content[1].back() ^= std::byte{0x40};  // of the exponent
    ASSERT_TRUE(job.allgather(content, coding));
    EXPECT_EQ(job.counts().hits, 2u);
    EXPECT_GE(job.sent(1), job.coded(1, content, coding));
  }
}

}  // namespace
}  // namespace bestride::inline collectives
