// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/reduce.hpp"

#include <gtest/gtest.h>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "collectives/testing/test_sums.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// Numbers that are contiguous, or every second one of an array.
template <class Number>
class Vector {
 public:
  Vector(std::size_t count, bool gaps) : numbers_(gaps ? 2 * count : count), step_(gaps ? 2 : 1) {
    if (!gaps || count == 0) return;
    const std::string size = std::to_string(sizeof(Number)), stride = std::to_string(2 * sizeof(Number));
    auto parsed = parse_type(("vector(" + std::to_string(count) + "," + size + "," + stride + ",byte)").c_str());
    packer_ = std::make_unique<Packer>(intern(evaluate(*parsed)->bytes));
  }
  std::size_t count() const { return numbers_.size() / step_; }
  Number& at(std::size_t i) { return numbers_[i * step_]; }
  Operand operand() {
    if (packer_) return Operand(numbers_.data(), *packer_);
    return Operand(numbers_.data(), static_cast<std::int64_t>(numbers_.size() * sizeof(Number)));
  }
  std::vector<Number> values() {
    std::vector<Number> all;
    for (std::size_t i = 0; i < count(); ++i) all.push_back(at(i));
    return all;
  }

 private:
  std::vector<Number> numbers_;
  std::size_t step_;
  std::unique_ptr<Packer> packer_;
};

/// Two calls with different roots. Each rank begins the second as soon as it has completed the first. The result of
/// each root equals that of the tree, bit for bit, and nothing else is written.
template <class Number>
void check(ReductionTree::Form form, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::repetitions(150); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    const int ranks = job.ranks();
    const ReductionTree tree(form, ranks);
    const Sum<Number> sum(tree);
    const ReductionOrder order(job.topology(), tree);
    const PipelineSettings pipeline{static_cast<std::int64_t>(8 + random() % 4000), static_cast<int>(1 + random() % 3)};
    const std::int64_t unit = sum.element_bytes;
    const std::size_t count = std::vector<std::size_t>{0, 1, 30, 700, 15000}[random() % 5] + random() % 3;
    const std::int64_t bytes = static_cast<std::int64_t>(count) * unit, most = reduce_segment(job.at(0), unit);
    const std::int64_t segment = random() % 2 ? most : unit * static_cast<std::int64_t>(1 + count / (1 + random() % 8));
    ASSERT_LE(segment, most);

    struct Call {
      int root = 0;
      bool in_place = false;
      std::vector<Vector<Number>> input;
      Vector<Number> output{0, false};
      std::vector<Number> expected;
    };
    std::vector<Call> calls(2);
    std::vector<std::vector<Task>> strands_of(nodes.size());
    for (Call& call : calls) {
      call.root = static_cast<int>(random() % nodes.size());
      call.in_place = random() % 2;
      call.output = Vector<Number>(count, random() % 3 == 0);
      for (int rank = 0; rank < ranks; ++rank) {
        call.input.emplace_back(count, random() % 3 == 0);
        for (std::size_t i = 0; i < count; ++i) call.input.back().at(i) = random_summand<Number>(random);
      }
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<Number> values;
        for (auto& input : call.input) values.push_back(input.at(i));
        call.expected.push_back(tree_sum(values, tree, 0, ranks));
      }
    }
    std::vector<std::vector<Number>> given;
    for (Call& call : calls)
      for (int rank = 0; rank < ranks; ++rank) {
        Vector<Number>& input = call.input[static_cast<std::size_t>(rank)];
        given.push_back(input.values());
        const Operand output = rank != call.root ? Operand() : call.in_place ? input.operand() : call.output.operand();
        strands_of[static_cast<std::size_t>(rank)].push_back(
            reduce(job.at(rank), input.operand(), output, call.root, sum, order, pipeline, segment));
      }
    std::vector<Task> tasks;
    for (auto& both : strands_of) tasks.push_back(in_turn(std::move(both)));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;

    std::vector<std::int64_t> out(nodes.size());
    for (std::size_t c = 0; c < calls.size(); ++c) {
      Call& call = calls[c];
      Vector<Number>& output = call.in_place ? call.input[static_cast<std::size_t>(call.root)] : call.output;
      ASSERT_EQ(output.values(), call.expected) << "round " << round;
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == call.root && call.in_place) continue;
        const std::size_t i = static_cast<std::size_t>(rank);
        ASSERT_EQ(call.input[i].values(), given[c * nodes.size() + i]) << "round " << round;
      }
      for (int node = 0; node < job.topology().nodes(); ++node) {
        std::int64_t own = 0;  // bytes reduced on this node
        for (std::int64_t first = 0; first < bytes; first += segment)
          own += part_of(std::min(segment, bytes - first), job.topology().nodes(), node, unit).length();
        const bool roots = node == job.topology().node_of(call.root);
        out[static_cast<std::size_t>(node)] += (bytes - own) * order.partials(node) + (roots ? 0 : own);
      }
    }
    for (int node = 0; node < job.topology().nodes(); ++node)
      EXPECT_EQ(job.bytes_out(node), out[static_cast<std::size_t>(node)]);
  }
}

TEST(ReduceToRoot, IntegersInAnyOrder) { check<std::uint32_t>(ReductionTree::Form::any, 11); }
TEST(ReduceToRoot, FloatsInFixedOrderForAnyPlacement) { check<float>(ReductionTree::Form::balanced, 12); }
TEST(ReduceToRoot, DoublesInFixedOrderForAnyPlacement) { check<double>(ReductionTree::Form::balanced, 13); }

TEST(ReduceToRoot, LongestSegmentFitsTheBuffer) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1, 1, 2}, {0, 0, 0, 0, 0}})
    for (const std::int64_t unit : {1, 3, 4, 16, 100000}) {
      SimulatedJob job(nodes, 14);
      const std::int64_t segment = reduce_segment(job.at(0), unit);
      ASSERT_GT(segment, 0);
      EXPECT_EQ(segment % unit, 0);
      const EvenParts parts(job.topology(), Operand(nullptr, segment), unit);
      std::int64_t longest = 0;
      for (int rank = 0; rank < job.ranks(); ++rank)
        longest =
            std::max(longest, parts.part(job.topology().node_of(rank), job.topology().local_rank_of(rank)).length());
      EXPECT_LE(longest, Hierarchy::intermediate_bytes);
      EXPECT_GT(longest, Hierarchy::intermediate_bytes - unit * job.at(0).lanes());
    }
  SimulatedJob job({0, 0, 0, 1}, 14);
  EXPECT_EQ(reduce_segment(job.at(0), Hierarchy::intermediate_bytes / 2), 0);
}

}  // namespace
}  // namespace bestride::inline collectives
