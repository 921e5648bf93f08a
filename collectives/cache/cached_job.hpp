// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated job whose nodes have arenas, and random contents for its allgathers. For tests.
#include "collectives/cache/allgather.hpp"
#include "collectives/cache/quantized_allgather.hpp"
#include "collectives/core/relays.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "collectives/testing/test_codes.hpp"

namespace bestride::inline collectives {

inline constexpr std::int64_t agreement = 6 * 32;  ///< bytes that a node sends for it, at most, with up to 64 nodes

using Content = std::vector<std::vector<std::byte>>;  ///< by rank: its block

struct Coding {
  NumberFormat format;
  CodeBits bits;
};
inline std::int64_t coded_bytes(const std::vector<std::byte>& block, Coding coding) {
  return quantized_bytes(static_cast<std::int64_t>(block.size()) / number_bytes(coding.format), coding.format,
                         coding.bits);
}

inline Content random_content(const std::vector<std::int64_t>& bytes, std::mt19937_64& random) {
  Content content;
  for (const std::int64_t b : bytes) {
    content.emplace_back(static_cast<std::size_t>(b));
    for (std::size_t i = 0; i < content.back().size(); i += 8) {
      const std::uint64_t bits = random();
      std::memcpy(content.back().data() + i, &bits, std::min<std::size_t>(8, content.back().size() - i));
    }
  }
  return content;
}

/// Changes each 16-bit word of a block with this probability. Returns the number of changed words.
inline std::int64_t change_words(std::vector<std::byte>& block, double probability, std::mt19937_64& random) {
  std::int64_t changed = 0;
  for (std::size_t i = 0; i + 2 <= block.size(); i += 2)
    if (static_cast<double>(random() % 1000000) < probability * 1e6) {
      block[i] ^= static_cast<std::byte>(1 + random() % 255);
      block[i + 1] ^= static_cast<std::byte>(1 + random() % 255);
      ++changed;
    }
  return changed;
}

class CachedJob {
 public:
  CachedJob(const std::vector<int>& nodes, std::uint64_t seed, CacheLimits limits, std::int64_t slot_bytes = 4096)
      : job(nodes, seed, slot_bytes) {
    job.allow_shorter_messages();
    for (int node = 0; node < job.topology().nodes(); ++node)
      memory_.emplace_back(static_cast<std::size_t>(limits.budget) + 64, std::byte{0xAB});
    for (int rank = 0; rank < job.ranks(); ++rank) {
      tables_.push_back(std::make_unique<CacheTable>(limits, job.ranks()));
      arenas_.emplace_back(memory_[static_cast<std::size_t>(job.topology().node_of(rank))].data(), limits.budget);
    }
  }
  void remove_arena_of_rank(int rank) { set_arena_of_rank(rank, Arena()); }
  void set_arena_of_rank(int rank, Arena arena) { arenas_[static_cast<std::size_t>(rank)] = std::move(arena); }
  void remove_arena_of_node(int node) {
    for (const int rank : job.topology().ranks_on(node)) remove_arena_of_rank(rank);
  }
  /// Runs one allgather of this content. False if it does not end, or if a rank misses a byte. `gaps(rank)`: blocks
  /// with gaps.
  template <class Gaps>
  bool allgather(const Content& content, PipelineSettings pipeline, Gaps gaps) {
    const std::vector<std::int64_t> bytes = bytes_of(content);
    count_from_here();
    std::vector<std::unique_ptr<TestBlocks>> blocks;
    std::vector<std::unique_ptr<RankBlocks>> vectors;
    std::vector<Task> tasks;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      const std::size_t i = static_cast<std::size_t>(rank);
      blocks.push_back(std::make_unique<TestBlocks>(bytes, gaps(rank)));
      blocks.back()->fill(rank, content[i]);
      vectors.push_back(std::make_unique<RankBlocks>(job.topology(), *blocks.back()));
      tasks.push_back(cached_allgather(job.at(rank), *vectors.back(), *tables_[i], arenas_[i], pipeline));
    }
    if (!job.run(std::move(tasks))) return false;
    for (const auto& rank : blocks)
      if (!holds(*rank, content)) return false;
    return true;
  }
  bool allgather(const Content& content, PipelineSettings pipeline = {}) {
    return allgather(content, pipeline, [](int) { return false; });
  }

  /// Runs one quantized allgather. False if it does not end, or if a rank has other bits than one coding of each block
  /// gives.
  template <class Gaps>
  bool allgather(const Content& content, Coding coding, PipelineSettings pipeline, Gaps gaps) {
    count_from_here();
    std::vector<std::unique_ptr<TestBlocks>> blocks;
    std::vector<Task> tasks;
    Content given = content, expected;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      const std::size_t i = static_cast<std::size_t>(rank);
      blocks.push_back(std::make_unique<TestBlocks>(bytes_of(content), gaps(rank)));
      // In place on every second rank.
      if (rank % 2) blocks.back()->fill(rank, content[i]);
      const Operand own =
          rank % 2 ? blocks.back()->of(rank) : Operand(given[i].data(), static_cast<std::int64_t>(given[i].size()));
      tasks.push_back(cached_quantized_allgather(job.at(rank), own, *blocks.back(), coding.format, coding.bits,
                                                 *tables_[i], arenas_[i], pipeline));
      expected.push_back(coded_once(content[i], coding.format, coding.bits));
    }
    if (!job.run(std::move(tasks))) return false;
    for (const auto& rank : blocks)
      if (!holds(*rank, expected)) return false;
    return true;
  }
  bool allgather(const Content& content, Coding coding, PipelineSettings pipeline = {}) {
    return allgather(content, coding, pipeline, [](int) { return false; });
  }

  /// Runs these allgathers one after the other; no rank waits for others in between.
  bool allgathers(const std::vector<Content>& contents, PipelineSettings pipeline) {
    struct Buffers {
      std::vector<std::unique_ptr<TestBlocks>> blocks;
      std::vector<std::unique_ptr<RankBlocks>> vectors;
    };
    std::vector<Buffers> buffers(static_cast<std::size_t>(job.ranks()));
    std::vector<Task> tasks;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      Buffers& mine = buffers[static_cast<std::size_t>(rank)];
      for (const Content& content : contents) {
        mine.blocks.push_back(std::make_unique<TestBlocks>(bytes_of(content), false));
        mine.blocks.back()->fill(rank, content[static_cast<std::size_t>(rank)]);
        mine.vectors.push_back(std::make_unique<RankBlocks>(job.topology(), *mine.blocks.back()));
      }
      tasks.push_back(one_after_the_other(rank, mine.vectors, pipeline));
    }
    if (!job.run(std::move(tasks))) return false;
    for (const Buffers& rank : buffers)
      for (std::size_t i = 0; i < contents.size(); ++i)
        if (!holds(*rank.blocks[i], contents[i])) return false;
    return true;
  }

  /// sent(): what left a node in the last allgather. plain(): what would have left it without a cache.
  std::int64_t sent(int node) const { return job.bytes_out(node) - before_[static_cast<std::size_t>(node)]; }
  std::int64_t plain(int node, const Content& content) const {
    return sent_by(plan(content), job.topology().nodes(), node);
  }
  /// How allgather() cuts a content.
  RelayPlan plan(const Content& content) const {
    const std::vector<std::int64_t> bytes = bytes_of(content);
    const bool even = std::none_of(bytes.begin(), bytes.end(), [](std::int64_t b) { return b % 2 != 0; });
    return RelayPlan(node_bytes(job.topology(), bytes), even ? 2 : 1, PipelineSettings{}.uneven);
  }
  /// What leaves a node in a quantized allgather that finds nothing.
  std::int64_t coded(int node, const Content& content, Coding coding) const {
    std::int64_t own = 0;
    for (const int rank : job.topology().ranks_on(node))
      own += coded_bytes(content[static_cast<std::size_t>(rank)], coding);
    return own * (job.topology().nodes() - 1);
  }
  const CacheCounts& counts(int rank = 0) const { return tables_[static_cast<std::size_t>(rank)]->counts(); }

  SimulatedJob job;

 private:
  void count_from_here() {
    before_.clear();
    for (int node = 0; node < job.topology().nodes(); ++node) before_.push_back(job.bytes_out(node));
  }
  static std::vector<std::int64_t> bytes_of(const Content& content) {
    std::vector<std::int64_t> bytes;
    for (const auto& block : content) bytes.push_back(static_cast<std::int64_t>(block.size()));
    return bytes;
  }
  bool holds(const TestBlocks& blocks, const Content& content) const {
    for (int from = 0; from < job.ranks(); ++from)
      if (!blocks.holds(from, content[static_cast<std::size_t>(from)])) return false;
    return true;
  }
  Task one_after_the_other(int rank, const std::vector<std::unique_ptr<RankBlocks>>& vectors,
                           PipelineSettings pipeline) {
    for (const auto& call : vectors)
      co_await cached_allgather(job.at(rank), *call, *tables_[static_cast<std::size_t>(rank)],
                                arenas_[static_cast<std::size_t>(rank)], pipeline);
  }

  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::unique_ptr<CacheTable>> tables_;
  std::vector<Arena> arenas_;
  std::vector<std::int64_t> before_;
};

}  // namespace bestride::inline collectives
