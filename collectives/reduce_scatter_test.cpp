// SPDX-License-Identifier: Apache-2.0
#include "collectives/reduce_scatter.hpp"

#include <gtest/gtest.h>

#include "collectives/simulated_job.hpp"
#include "collectives/test_blocks.hpp"
#include "collectives/test_sums.hpp"

namespace bestride {
namespace {

/// Contiguous blocks of whole numbers.
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
  std::int64_t bytes(int rank) const noexcept override { return counts_[static_cast<std::size_t>(rank)] * static_cast<std::int64_t>(sizeof(Number)); }
  std::int64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  Operand whole() { return Operand(numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof(Number))); }
  std::vector<Number> numbers;

 private:
  std::vector<std::int64_t> begins_, counts_;
};

/// Reduce-scatters and allreduces of random vectors over random placements: every member's result is the tree's, bit for bit.
template <class Number>
void check(bool ordered, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 150; ++round) {
    const std::vector<int> nodes = random_placement(random);
    const int ranks = static_cast<int>(nodes.size());
    SimulatedJob job(nodes, random());
    const std::vector<std::int64_t> counts = random_sizes(random, nodes.size(), {0, 1, 30, 700, 4000});
    std::vector<Blocks<Number>> input;
    for (int rank = 0; rank < ranks; ++rank) {
      input.emplace_back(counts);
      for (Number& number : input.back().numbers) number = random_summand<Number>(random);
    }
    std::vector<Number> expected(input[0].numbers.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::vector<Number> values;
      for (const auto& blocks : input) values.push_back(blocks.numbers[i]);
      expected[i] = tree_sum(values, 0, ranks);
    }
    const Sum<Number> sum(ordered);
    const ReductionOrder order(job.topology(), ordered);
    const Pace pace{static_cast<std::int64_t>(8 + random() % 4000), static_cast<int>(1 + random() % 3)};

    std::vector<std::vector<Number>> output;
    std::vector<Strand> strands;
    for (int rank = 0; rank < ranks; ++rank) output.emplace_back(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
    for (int rank = 0; rank < ranks; ++rank) {
      auto& mine = output[static_cast<std::size_t>(rank)];
      strands.push_back(reduce_scatter(job.at(rank), input[static_cast<std::size_t>(rank)],
                                       Operand(mine.data(), static_cast<std::int64_t>(mine.size() * sizeof(Number))), sum, order, pace));
    }
    ASSERT_TRUE(job.run(std::move(strands))) << "round " << round;
    for (int rank = 0; rank < ranks; ++rank)
      for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(rank)]; ++i)
        ASSERT_EQ(output[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(input[0].begin(rank) + i)])
            << "round " << round << " rank " << rank << " element " << i;
    for (int node = 0; node < job.topology().nodes(); ++node) {
      std::int64_t foreign = 0;
      for (int rank = 0; rank < ranks; ++rank)
        if (job.topology().node_of(rank) != node) foreign += input[0].bytes(rank);
      EXPECT_EQ(job.bytes_out(node), foreign * order.partials(node));
    }

    strands.clear();
    for (int rank = 0; rank < ranks; ++rank) {
      auto& mine = input[static_cast<std::size_t>(rank)];
      strands.push_back(allreduce(job.at(rank), mine.whole(), mine.whole(), sum, order, pace));
    }
    ASSERT_TRUE(job.run(std::move(strands))) << "round " << round;
    for (const auto& blocks : input) ASSERT_EQ(blocks.numbers, expected) << "round " << round;
  }
}

TEST(Reduce, WholeNumbersInAnyOrder) { check<std::uint32_t>(false, 3); }
TEST(Reduce, FloatsInTheOneOrderAtAnyPlacement) { check<float>(true, 4); }
TEST(Reduce, DoublesInTheOneOrderAtAnyPlacement) { check<double>(true, 5); }

TEST(ReductionOrder, ANodeOfAnAlignedRunSendsOnePartialResult) {
  const ReductionOrder block(Topology(std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}), true);
  for (int node = 0; node < 3; ++node) EXPECT_EQ(block.partials(node), 1);
  const ReductionOrder dealt(Topology(std::vector<int>{0, 1, 0, 1}), true);
  EXPECT_EQ(dealt.partials(0), 2);
  EXPECT_EQ(ReductionOrder(Topology(std::vector<int>{0, 1, 0, 1}), false).partials(0), 1);
}

}  // namespace
}  // namespace bestride
