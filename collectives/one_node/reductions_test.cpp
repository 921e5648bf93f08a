// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/reductions.hpp"

#include <gtest/gtest.h>

#include <string>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/simulated_node.hpp"
#include "collectives/testing/test_sums.hpp"
#include "datatype/build.hpp"
#include "datatype/expression.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// Numbers that are contiguous, or every second one of an array; cut into blocks.
template <class Number>
class Numbers final : public Operands {
 public:
  Numbers(const std::vector<std::int64_t>& counts, bool gaps) : step_(gaps ? 2 : 1), counts_(counts) {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) {
      begins_.push_back(sum);
      sum += count;
      packers_.push_back(gaps && count > 0 ? packer_for(count) : nullptr);
    }
    values_.resize(static_cast<std::size_t>(sum * step_), Number(77));
  }
  Operand of(int rank) const noexcept override {
    const auto i = static_cast<std::size_t>(rank);
    auto* place = const_cast<Number*>(values_.data()) + begins_[i] * step_;
    return packers_[i] ? Operand(place, *packers_[i]) : Operand(place, bytes(rank));
  }
  std::int64_t bytes(int rank) const noexcept override {
    return counts_[static_cast<std::size_t>(rank)] * static_cast<std::int64_t>(sizeof(Number));
  }
  Number& at(std::int64_t i) { return values_[static_cast<std::size_t>(i * step_)]; }
  std::int64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  std::int64_t count() const { return static_cast<std::int64_t>(values_.size()) / step_; }
  bool gaps_kept() const {
    for (std::size_t i = 1; step_ == 2 && i < values_.size(); i += 2)
      if (values_[i] != Number(77)) return false;
    return true;
  }

 private:
  static std::unique_ptr<Packer> packer_for(std::int64_t count) {
    const std::string size = std::to_string(sizeof(Number)), stride = std::to_string(2 * sizeof(Number));
    auto parsed = parse_type(("vector(" + std::to_string(count) + "," + size + "," + stride + ",byte)").c_str());
    return std::make_unique<Packer>(intern(evaluate(*parsed)->bytes));
  }
  std::int64_t step_;
  std::vector<std::int64_t> counts_, begins_;
  std::vector<std::unique_ptr<Packer>> packers_;
  std::vector<Number> values_;
};

template <class Number>
struct Call {
  enum Kind { allreduce, reduce, reduce_scatter } kind;
  int root;
  bool in_place;
  std::vector<Numbers<Number>> input, output;  ///< by rank
  std::vector<Number> expected;

  Call(int ranks, const ReductionTree& tree, std::mt19937_64& random)
      : kind(static_cast<Kind>(random() % 3)),
        root(static_cast<int>(random() % static_cast<unsigned>(ranks))),
        in_place(kind != reduce_scatter && random() % 3 == 0) {
    const auto most = std::vector<std::int64_t>{0, 1, 30, 700, 5000}[random() % 5];
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < (kind == reduce_scatter ? ranks : 1); ++rank)
      counts.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1)));
    for (int rank = 0; rank < ranks; ++rank) {
      input.emplace_back(counts, random() % 2 != 0);
      for (std::int64_t i = 0; i < input.back().count(); ++i) input.back().at(i) = random_summand<Number>(random);
      output.emplace_back(kind == reduce_scatter ? std::vector{counts[static_cast<std::size_t>(rank)]} : counts,
                          random() % 2 != 0);
    }
    for (std::int64_t i = 0; i < input[0].count(); ++i) {
      std::vector<Number> values;
      for (auto& numbers : input) values.push_back(numbers.at(i));
      expected.push_back(tree_sum(values, tree, 0, ranks));
    }
  }
  Numbers<Number>& result(int rank) { return (in_place ? input : output)[static_cast<std::size_t>(rank)]; }
  Task task(Rounds& rounds, const Reduction& sum) {
    const int rank = rounds.rank();
    const Numbers<Number>& given = input[static_cast<std::size_t>(rank)];
    switch (kind) {
      case allreduce: return collectives::allreduce(rounds, given.of(0), result(rank).of(0), sum);
      case reduce:
        return collectives::reduce(rounds, given.of(0), rank == root ? result(rank).of(0) : Operand(), root, sum);
      default: return collectives::reduce_scatter(rounds, given, result(rank).of(0), sum);
    }
  }
  bool correct() {
    for (int rank = 0; rank < static_cast<int>(input.size()); ++rank) {
      if (!input[static_cast<std::size_t>(rank)].gaps_kept() || !output[static_cast<std::size_t>(rank)].gaps_kept())
        return false;
      if (kind == reduce && rank != root) continue;
      const std::int64_t first = kind == reduce_scatter ? input[0].begin(rank) : 0;
      for (std::int64_t i = 0; i < result(rank).count(); ++i)
        if (result(rank).at(i) != expected[static_cast<std::size_t>(first + i)]) return false;
    }
    return true;
  }
};

template <class Number>
void check(ReductionTree::Form form, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int job = 0; job < test::repetitions(250); ++job) {
    const int ranks = static_cast<int>(1 + random() % 9);
    SimulatedNode node(ranks, static_cast<std::int64_t>(1024 + random() % 9000) / 128 * 128, random());
    const ReductionTree tree(form, ranks);
    const Sum<Number> sum(tree);
    std::vector<Call<Number>> calls;
    for (std::uint64_t count = 1 + random() % 6; count > 0; --count) calls.emplace_back(ranks, tree, random);
    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<Task> own;
      for (auto& call : calls) own.push_back(as_call(node.at(rank), call.task(node.at(rank), sum)));
      tasks.push_back(in_turn(std::move(own)));
    }
    ASSERT_TRUE(node.run(std::move(tasks))) << job;
    for (auto& call : calls) ASSERT_TRUE(call.correct()) << job;
  }
}

TEST(OneNode, ExactReductions) {
  check<std::int32_t>(ReductionTree::Form::any, 1);
  check<std::int64_t>(ReductionTree::Form::any, 2);
}
/// The bits of a tree over the rank numbers.
TEST(OneNode, ReductionsInOneOrder) {
  check<double>(ReductionTree::Form::balanced, 3);
  check<float>(ReductionTree::Form::balanced, 4);
  check<double>(ReductionTree::Form::paired, 5);
  check<float>(ReductionTree::Form::paired, 6);
}

}  // namespace
}  // namespace bestride::inline collectives
