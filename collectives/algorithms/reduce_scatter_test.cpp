// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/reduce_scatter.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "collectives/testing/test_sums.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// Contiguous blocks of numbers.
template <class Number>
class Blocks final : public Operands {
 public:
  explicit Blocks(const std::vector<std::int64_t>& counts) {
    for (const std::int64_t count : counts) {
      begins_.push_back(static_cast<std::int64_t>(numbers.size()));
      counts_.push_back(count);
      numbers.resize(numbers.size() + static_cast<std::size_t>(count));
    }
  }
  Operand of(int rank) const noexcept override {
    return Operand(const_cast<Number*>(numbers.data()) + begin(rank), bytes(rank));
  }
  std::int64_t bytes(int rank) const noexcept override {
    return counts_[static_cast<std::size_t>(rank)] * static_cast<std::int64_t>(sizeof(Number));
  }
  std::int64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  Operand whole() { return Operand(numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof(Number))); }
  std::vector<Number> numbers;

 private:
  std::vector<std::int64_t> begins_, counts_;
};

/// One vector per rank, cut into blocks of `counts` numbers, and the sum in the defined order.
template <class Number>
std::pair<std::vector<Blocks<Number>>, std::vector<Number>> summands(std::mt19937_64& random,
                                                                     const std::vector<std::int64_t>& counts,
                                                                     const ReductionTree& tree) {
  std::vector<Blocks<Number>> input;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    input.emplace_back(counts);
    for (Number& number : input.back().numbers) number = random_summand<Number>(random);
  }
  std::vector<Number> expected(input[0].numbers.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<Number> values;
    for (const auto& blocks : input) values.push_back(blocks.numbers[i]);
    expected[i] = tree_sum(values, tree, 0, static_cast<int>(counts.size()));
  }
  return {std::move(input), std::move(expected)};
}

/// Checks that every rank gets its block of the sum. `gaps`: every second place holds a number.
template <class Number>
void scatter_sum(SimulatedJob& job, const std::vector<Blocks<Number>>& input, const std::vector<Number>& expected,
                 const Sum<Number>& sum, const ReductionOrder& order, PipelineSettings pipeline, bool gaps = false) {
  std::vector<std::vector<Number>> output;
  std::vector<std::unique_ptr<Packer>> packers;
  std::vector<Task> tasks;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const std::int64_t count = input[0].bytes(rank) / static_cast<std::int64_t>(sizeof(Number));
    output.emplace_back(static_cast<std::size_t>(gaps ? 2 * count : count));
    const auto parsed = parse_type(("vector(" + std::to_string(count) + "," + std::to_string(sizeof(Number)) + "," +
                                    std::to_string((gaps ? 2 : 1) * sizeof(Number)) + ",byte)")
                                       .c_str());
    packers.push_back(count > 0 ? std::make_unique<Packer>(intern(evaluate(*parsed)->bytes)) : nullptr);
    const Operand into = count > 0 ? Operand(output.back().data(), *packers.back()) : Operand(nullptr, 0);
    tasks.push_back(reduce_scatter(job.at(rank), input[static_cast<std::size_t>(rank)], into, sum, order, pipeline));
  }
  ASSERT_TRUE(job.run(std::move(tasks)));
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const auto& mine = output[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < mine.size(); i += gaps ? 2 : 1)
      ASSERT_EQ(mine[i], expected[static_cast<std::size_t>(input[0].begin(rank)) + (gaps ? i / 2 : i)])
          << "rank " << rank << " element " << i;
  }
}

/// Reduce-scatters and allreduces of random vectors over random placements. The result on every member equals that of
/// the tree, bit for bit.
template <class Number>
void check(ReductionTree::Form form, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::repetitions(150); ++round) {
    const std::vector<int> nodes = random_placement(random);
    const int ranks = static_cast<int>(nodes.size());
    SimulatedJob job(nodes, random());
    const std::vector<std::int64_t> counts = random_sizes(random, nodes.size(), {0, 1, 30, 700, 4000});
    const ReductionTree tree(form, static_cast<int>(nodes.size()));
    auto [input, expected] = summands<Number>(random, counts, tree);
    const Sum<Number> sum(tree);
    const ReductionOrder order(job.topology(), tree);
    const PipelineSettings pipeline{static_cast<std::int64_t>(8 + random() % 4000), static_cast<int>(1 + random() % 3),
                                    0, std::numeric_limits<std::int64_t>::max()};
    scatter_sum(job, input, expected, sum, order, pipeline);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
    for (int node = 0; node < job.topology().nodes(); ++node) {
      std::int64_t foreign = 0;
      for (int rank = 0; rank < ranks; ++rank)
        if (job.topology().node_of(rank) != node) foreign += input[0].bytes(rank);
      EXPECT_EQ(job.bytes_out(node), foreign * order.partials(node));
    }

    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& mine = input[static_cast<std::size_t>(rank)];
      tasks.push_back(allreduce(job.at(rank), mine.whole(), mine.whole(), sum, order, pipeline));
    }
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    for (const auto& blocks : input) ASSERT_EQ(blocks.numbers, expected) << "round " << round;
  }
}

/// If nodes receive unequal numbers of bytes, the busiest link carries the lower bound plus the ignored difference at
/// most.
template <class Number>
void check_unequal(ReductionTree::Form form, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int relayed = 0;
  for (int round = 0; round < test::repetitions(200); ++round) {
    // Of ordered reductions, only those with one partial result per node are relayed: aligned runs of 2^k ranks.
    std::vector<int> nodes = random_unequal_placement(random);
    if (form != ReductionTree::Form::any && random() % 4) {
      nodes.clear();
      for (int node = 0, count = static_cast<int>(3 + random() % 3), each = 1 << random() % 3; node < count; ++node)
        nodes.insert(nodes.end(), static_cast<std::size_t>(each), node);
    }
    SimulatedJob job(nodes, random());
    std::vector<std::int64_t> counts = random_unequal_sizes(random, nodes.size(), random() % 2 ? 300 : 4000, 1);
    const ReductionTree tree(form, static_cast<int>(nodes.size()));
    auto [input, expected] = summands<Number>(random, counts, tree);
    const Sum<Number> sum(tree);
    const ReductionOrder order(job.topology(), tree);
    const PipelineSettings pipeline{static_cast<std::int64_t>(8 + random() % 4000), static_cast<int>(1 + random() % 4),
                                    0, static_cast<std::int64_t>(random() % 3 * 1000)};
    scatter_sum(job, input, expected, sum, order, pipeline, random() % 3 == 0);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
    if (order.max_partials() > 1) continue;
    for (auto& count : counts) count *= static_cast<std::int64_t>(sizeof(Number));
    const std::vector<std::int64_t> bytes = node_bytes(job.topology(), counts);
    const std::int64_t bound =
        std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - *std::min_element(bytes.begin(), bytes.end());
    const std::int64_t left_alone =
        std::max({pipeline.uneven, bound / 64, job.topology().nodes() * static_cast<std::int64_t>(sizeof(Number))});
    relayed += !RelayPlan(bytes, sizeof(Number), pipeline.uneven).even();
    for (int node = 0; node < job.topology().nodes(); ++node) {
      EXPECT_LE(job.bytes_out(node), bound) << "round " << round;
      EXPECT_LE(job.bytes_in(node), bound + left_alone) << "round " << round;
    }
  }
  EXPECT_GT(relayed, test::repetitions(50));
}

TEST(Reduce, UnequalNodesInAnyOrder) { check_unequal<std::uint32_t>(ReductionTree::Form::any, 6); }
TEST(Reduce, UnequalNodesInFixedOrder) { check_unequal<float>(ReductionTree::Form::balanced, 7); }
TEST(Reduce, IntegersInAnyOrder) { check<std::uint32_t>(ReductionTree::Form::any, 3); }
TEST(Reduce, FloatsInFixedOrderForAnyPlacement) { check<float>(ReductionTree::Form::balanced, 4); }
TEST(Reduce, DoublesInFixedOrderForAnyPlacement) { check<double>(ReductionTree::Form::balanced, 5); }

TEST(Reduce, FloatsInPairsForAnyPlacement) { check<float>(ReductionTree::Form::paired, 8); }

std::string text(const ReductionTree& tree, int first, int last) {
  if (last - first == 1) return std::to_string(first);
  const int middle = tree.cut(first, last);
  return "(" + text(tree, first, middle) + text(tree, middle, last) + ")";
}

TEST(ReductionTree, Forms) {
  const auto balanced = [](int ranks) { return text(ReductionTree(ReductionTree::Form::balanced, ranks), 0, ranks); };
  const auto paired = [](int ranks) { return text(ReductionTree(ReductionTree::Form::paired, ranks), 0, ranks); };
  EXPECT_EQ(balanced(5), "(((01)(23))4)");
  EXPECT_EQ(paired(5), "(((01)2)(34))");
  EXPECT_EQ(balanced(7), "(((01)(23))((45)6))");
  EXPECT_EQ(paired(9), "((((01)2)(34))((56)(78)))");
  // The same for 2^a - 2^b ranks.
  for (int ranks = 2; ranks <= 128; ++ranks) {
    const bool same = std::has_single_bit(static_cast<unsigned>(ranks + (ranks & -ranks)));
    EXPECT_EQ(balanced(ranks) == paired(ranks), same) << ranks;
  }
}

TEST(ReductionOrder, NodeWithAlignedRanksSendsOnePartialResult) {
  const ReductionOrder block(Topology(std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}),
                             ReductionTree(ReductionTree::Form::balanced, 11));
  for (int node = 0; node < 3; ++node) EXPECT_EQ(block.partials(node), 1);
  const ReductionOrder dealt(Topology(std::vector<int>{0, 1, 0, 1}), ReductionTree(ReductionTree::Form::balanced, 4));
  EXPECT_EQ(dealt.partials(0), 2);
  EXPECT_EQ(ReductionOrder(Topology(std::vector<int>{0, 1, 0, 1}), ReductionTree()).partials(0), 1);
}

}  // namespace
}  // namespace bestride::inline collectives
