// SPDX-License-Identifier: Apache-2.0
// The ranks of one node as threads. Only the agreement orders their accesses to plain data and codes in the arena.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "collectives/cache/cached_job.hpp"

namespace bestride::inline collectives {
namespace {

TEST(CachedAllgatherThreads, RanksOfANodeShareOneArena) {
  constexpr int ranks = 3;
  std::mt19937_64 random(31);
  const std::vector<int> node(ranks, 0);
  SimulatedJob job(node, 1);
  const std::vector<std::int64_t> sizes[2] = {{5000, 12000, 0}, {9000, 0, 7000}};
  std::vector<Content> contents;
  for (int call = 0; call < 300; ++call)
    contents.push_back(random() % 3 && call > 1 ? contents[contents.size() - 1 - random() % 2]
                                                : random_content(sizes[random() % 2], random));
  const CacheLimits limits{17024, 0, true};  // one result
  std::vector<std::byte> memory(static_cast<std::size_t>(limits.budget));
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> hits{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      CacheTable table(limits, ranks);
      Arena arena(memory.data(), limits.budget);
      for (const Content& content : contents) {
        std::vector<std::int64_t> bytes;
        for (const auto& block : content) bytes.push_back(static_cast<std::int64_t>(block.size()));
        TestBlocks blocks(bytes, rank == 1);
        blocks.fill(rank, content[static_cast<std::size_t>(rank)]);
        const RankBlocks vectors(job.topology(), blocks);
        const bool quantized = bytes == sizes[1];
        Task task = quantized ? cached_quantized_allgather(job.at(rank), blocks.of(rank), blocks, NumberFormat::float32,
                                                           CodeBits::int8, table, arena, {1000, 2})
                              : cached_allgather(job.at(rank), vectors, table, arena, {1000, 2});
        while (!task.step()) std::this_thread::yield();
        for (int from = 0; from < ranks; ++from) {
          const auto& given = content[static_cast<std::size_t>(from)];
          wrong += !blocks.holds(from, quantized ? coded_once(given, NumberFormat::float32, CodeBits::int8) : given);
        }
      }
      hits = table.counts().hits;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 50u);
}

}  // namespace
}  // namespace bestride::inline collectives
