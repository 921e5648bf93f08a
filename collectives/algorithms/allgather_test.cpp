// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/allgather.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "collectives/core/relays.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// The blocks of every rank as node vectors.
struct Gathered {
  Gathered(SimulatedJob& job, const std::vector<std::int64_t>& bytes, std::mt19937_64& random) {
    for (int rank = 0; rank < job.ranks(); ++rank) {
      blocks.push_back(std::make_unique<TestBlocks>(bytes, random() % 3 == 0));
      blocks.back()->fill(rank);
      vectors.push_back(std::make_unique<RankBlocks>(job.topology(), *blocks.back()));
    }
  }
  bool all_hold_all() const {
    for (const auto& mine : blocks)
      for (std::size_t from = 0; from < blocks.size(); ++from)
        if (!mine->holds(static_cast<int>(from))) return false;
    return true;
  }
  std::vector<std::unique_ptr<TestBlocks>> blocks;
  std::vector<std::unique_ptr<RankBlocks>> vectors;
};

/// Checks the bytes in and out of every node for one allgather of vectors of these sizes. The busiest direction carries
/// the lower bound plus the ignored difference at most.
void expect_least_bytes(const SimulatedJob& job, const std::vector<std::int64_t>& bytes, std::int64_t unit,
                        const PipelineSettings& pipeline) {
  const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}),
                     bound = all - *std::min_element(bytes.begin(), bytes.end());
  const RelayPlan plan(bytes, unit, pipeline.uneven);
  const int nodes = job.topology().nodes();
  for (int node = 0; node < nodes; ++node) {
    const std::int64_t own = bytes[static_cast<std::size_t>(node)];
    EXPECT_EQ(job.bytes_in(node), all - own);
    EXPECT_EQ(job.bytes_out(node), sent_by(plan, nodes, node));
    EXPECT_LE(job.bytes_out(node), bound + std::max({pipeline.uneven, bound / 64, nodes * unit}));
  }
}

TEST(Allgather, EveryRankGetsEveryBlockAndEveryByteCrossesEachLinkOnce) {
  std::mt19937_64 random(1);
  for (int round = 0; round < test::repetitions(300); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    const std::vector<std::int64_t> bytes = random_sizes(random, nodes.size(), {0, 1, 100, 5000, 40000});
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3),
                                    0, std::numeric_limits<std::int64_t>::max()};
    Gathered gathered(job, bytes, random);
    for (int again = 0; again < 2; ++again) {
      std::vector<Task> tasks;
      for (int rank = 0; rank < job.ranks(); ++rank)
        tasks.push_back(allgather(job.at(rank), *gathered.vectors[static_cast<std::size_t>(rank)], pipeline));
      ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
      ASSERT_TRUE(gathered.all_hold_all()) << "round " << round;
    }
    const std::vector<std::int64_t> vectors = node_bytes(job.topology(), bytes);
    const std::int64_t all = std::accumulate(vectors.begin(), vectors.end(), std::int64_t{0});
    for (int node = 0; node < job.topology().nodes(); ++node) {
      EXPECT_EQ(job.bytes_in(node), 2 * (all - vectors[static_cast<std::size_t>(node)]));
      EXPECT_EQ(job.bytes_out(node), 2 * vectors[static_cast<std::size_t>(node)] * (job.topology().nodes() - 1));
    }
  }
}

TEST(Allgather, LateNodeDelaysNoEarlierPiece) {
  std::vector<int> nodes;
  for (int rank = 0; rank < 40; ++rank) nodes.push_back(rank / 2);
  SimulatedJob job(nodes, 3);
  std::mt19937_64 random(3);
  Gathered gathered(job, std::vector<std::int64_t>(nodes.size(), 400), random);
  std::vector<Task> tasks(nodes.size());
  for (int rank = 0; rank < job.ranks(); ++rank)
    if (nodes[static_cast<std::size_t>(rank)] != 2)
      tasks[static_cast<std::size_t>(rank)] =
          allgather(job.at(rank), *gathered.vectors[static_cast<std::size_t>(rank)], {50, 2});
  ASSERT_FALSE(job.run(std::move(tasks)));
  // Node 0 receives from ranks 19, 18, ... 4 at the same time, and from rank 2 only after that.
  for (int rank : {0, 1})
    for (int from = 8; from < job.ranks(); ++from)
      EXPECT_TRUE(gathered.blocks[static_cast<std::size_t>(rank)]->holds(from)) << rank << " of " << from;
}

/// Marks every byte that it receives; counts bytes received twice.
class Marked final : public PieceObserver {
 public:
  Marked(const std::vector<std::int64_t>& bytes, const NodeVectors& vectors) : vectors_(vectors) {
    for (const std::int64_t b : bytes) seen_.emplace_back(static_cast<std::size_t>(b));
  }
  void keep(int node, Range range, const std::byte* data) noexcept override {
    std::vector<std::byte> there(static_cast<std::size_t>(range.length()));
    vectors_.read(node, range, there.data());
    if (range.length() > 0 && std::memcmp(there.data(), data, there.size()) != 0) ++wrong;
    for (std::int64_t i = range.first; i < range.last; ++i)
      seen_[static_cast<std::size_t>(node)][static_cast<std::size_t>(i)] += 1;
  }
  /// How often each byte of the node was kept.
  const std::vector<char>& seen(int node) const { return seen_[static_cast<std::size_t>(node)]; }
  int wrong = 0;

 private:
  const NodeVectors& vectors_;
  std::vector<std::vector<char>> seen_;
};

/// A piece that equals the one in an older result is encoded as one byte.
class AsBefore final : public PieceCode {
 public:
  AsBefore(const NodeVectors& older, int own, long* onward) : older_(older), own_(own), onward_(onward) {}
  std::int64_t encode(int node, Range range, const std::byte* piece, std::byte* out) noexcept override {
    if (range.length() < 2 || before(node, range) != std::vector<std::byte>(piece, piece + range.length())) return 0;
    *out = std::byte{1};
    *onward_ += node != own_;
    return 1;
  }
  bool decode(int node, Range range, const std::byte* encoded, std::int64_t bytes, std::byte* piece) noexcept override {
    if (bytes != 1 || *encoded != std::byte{1}) return false;
    std::memcpy(piece, before(node, range).data(), static_cast<std::size_t>(range.length()));
    return true;
  }

 private:
  std::vector<std::byte> before(int node, Range range) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(range.length()));
    older_.read(node, range, bytes.data());
    return bytes;
  }
  const NodeVectors& older_;
  const int own_;
  long* const onward_;
};

TEST(Allgather, UnequalNodesLoadTheBusiestLinkMinimally) {
  std::mt19937_64 random(2);
  int uneven = 0;
  long onward = 0;
  for (int round = 0; round < test::repetitions(400); ++round) {
    const std::vector<int> nodes = random_unequal_placement(random);
    SimulatedJob job(nodes, random());
    const std::int64_t unit = static_cast<std::int64_t>(1 + random() % 8);
    const std::vector<std::int64_t> bytes =
        random_unequal_sizes(random, nodes.size(), random() % 2 ? 2000 : 30000, unit);
    const std::vector<std::int64_t> vectors = node_bytes(job.topology(), bytes);
    const PipelineSettings pipeline{static_cast<std::int64_t>(unit + random() % 4096),
                                    static_cast<int>(1 + random() % 4), 0,
                                    static_cast<std::int64_t>(random() % 3 * 1000)};
    uneven += !RelayPlan(vectors, unit, pipeline.uneven).even();
    Gathered gathered(job, bytes, random), older(job, bytes, random);
    const bool coded = random() % 2;
    if (coded) job.allow_shorter_messages();
    for (const auto& mine : older.blocks)
      for (int from = 0; from < job.ranks(); ++from) mine->fill(from, from % 2 ? from : from + 1);
    std::vector<std::unique_ptr<Marked>> marked;
    std::vector<std::unique_ptr<AsBefore>> codes;
    std::vector<Task> tasks;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      marked.push_back(std::make_unique<Marked>(vectors, *gathered.vectors[i]));
      codes.push_back(std::make_unique<AsBefore>(*older.vectors[i], job.topology().node_of(rank), &onward));
      tasks.push_back(allgather(job.at(rank), *gathered.vectors[i], pipeline, unit, marked.back().get(),
                                coded ? codes.back().get() : nullptr));
    }
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    ASSERT_TRUE(gathered.all_hold_all()) << "round " << round;
    if (!coded) expect_least_bytes(job, vectors, unit, pipeline);
    for (int node = 0; node < job.topology().nodes(); ++node)
      for (int from = 0; from < job.topology().nodes(); ++from) {
        std::vector<char> seen(static_cast<std::size_t>(vectors[static_cast<std::size_t>(from)]));
        for (const int rank : job.topology().ranks_on(node)) {
          const std::vector<char>& by_rank = marked[static_cast<std::size_t>(rank)]->seen(from);
          std::transform(seen.begin(), seen.end(), by_rank.begin(), seen.begin(), std::plus<char>());
        }
        const auto wrong =
            std::find_if(seen.begin(), seen.end(), [&](char times) { return times != (from != node ? 1 : 0); });
        ASSERT_EQ(wrong, seen.end()) << "round " << round << " byte " << wrong - seen.begin() << " of node " << from
                                     << " on node " << node;
      }
    for (const auto& mine : marked) ASSERT_EQ(mine->wrong, 0);
  }
  EXPECT_GT(uneven, test::repetitions(200));
  EXPECT_GT(onward, test::repetitions(100));
}

}  // namespace
}  // namespace bestride::inline collectives
