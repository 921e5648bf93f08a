// SPDX-License-Identifier: Apache-2.0
// Collectives of all kinds one after the other on one hierarchy: a rank continues with the next one while others are
// still in the previous one.
#include <gtest/gtest.h>

#include <functional>

#include "collectives/algorithms/allgather.hpp"
#include "collectives/algorithms/alltoall.hpp"
#include "collectives/algorithms/bcast.hpp"
#include "collectives/algorithms/gather.hpp"
#include "collectives/algorithms/reduce.hpp"
#include "collectives/algorithms/reduce_scatter.hpp"
#include "collectives/algorithms/scatter.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "collectives/testing/test_sums.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// One rank in a call: its task, and the check at the end. Owns the data of the task.
struct Call {
  Task task;
  std::function<bool()> correct;
};

using Job = SimulatedJob;
using Sizes = std::vector<std::int64_t>;

Call a_share(Job& job, int rank, Sizes sizes, PipelineSettings pipeline) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto vectors = std::make_shared<RankBlocks>(job.topology(), *blocks);
  blocks->fill(rank);
  return {allgather(job.at(rank), *vectors, pipeline), [blocks, vectors, ranks = job.ranks()] {
            for (int from = 0; from < ranks; ++from)
              if (!blocks->holds(from)) return false;
            return true;
          }};
}

Call a_broadcast(Job& job, int rank, int root, Sizes sizes, PipelineSettings pipeline) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  if (rank == root) blocks->fill(root);
  return {bcast(job.at(rank), blocks->of(root), root, pipeline), [blocks, root] { return blocks->holds(root); }};
}

Call a_collect(Job& job, int rank, int root, Sizes sizes, PipelineSettings pipeline) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto vectors = std::make_shared<RankBlocks>(job.topology(), *blocks);
  blocks->fill(rank);
  return {gather(job.at(rank), *vectors, root, pipeline), [blocks, vectors, rank, root, ranks = job.ranks()] {
            for (int from = 0; rank == root && from < ranks; ++from)
              if (!blocks->holds(from)) return false;
            return true;
          }};
}

Call a_distribute(Job& job, int rank, int root, Sizes sizes, PipelineSettings pipeline) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto vectors = std::make_shared<RankBlocks>(job.topology(), *blocks);
  for (int to = 0; rank == root && to < job.ranks(); ++to) blocks->fill(to);
  return {scatter(job.at(rank), *vectors, root, pipeline), [blocks, vectors, rank] { return blocks->holds(rank); }};
}

Call an_exchange(Job& job, int rank, std::int64_t bytes, PipelineSettings pipeline) {
  const int ranks = job.ranks();
  const Sizes sizes(static_cast<std::size_t>(ranks), bytes);
  auto input = std::make_shared<TestBlocks>(sizes, false), output = std::make_shared<TestBlocks>(sizes, false);
  for (int to = 0; to < ranks; ++to) input->fill(to, rank * ranks + to);
  return {alltoall(job.at(rank), *input, *output, pipeline), [input, output, rank, ranks] {
            for (int from = 0; from < ranks; ++from)
              if (!output->holds(from, from * ranks + rank)) return false;
            return true;
          }};
}

/// Every rank contributes its number plus the element's index.
Call a_sum(Job& job, int rank, int root, bool to_all, Sizes sizes, PipelineSettings pipeline) {
  static const Sum<std::uint32_t> sum{ReductionTree()};
  auto order = std::make_shared<ReductionOrder>(job.topology(), ReductionTree());
  const std::size_t count = static_cast<std::size_t>(sizes[0] / 4);
  auto data = std::make_shared<std::vector<std::uint32_t>>();
  for (std::size_t i = 0; i < count; ++i)
    data->push_back(static_cast<std::uint32_t>(rank) + static_cast<std::uint32_t>(i));
  const Operand operand(data->data(), static_cast<std::int64_t>(4 * count));
  Task task = to_all
                  ? allreduce(job.at(rank), operand, operand, sum, *order, pipeline)
                  : reduce(job.at(rank), operand, rank == root ? operand : Operand(), root, sum, *order, pipeline, 400);
  return {std::move(task),
          [order, data, all = to_all || rank == root, ranks = static_cast<std::uint32_t>(job.ranks())] {
            for (std::size_t i = 0; all && i < data->size(); ++i)
              if ((*data)[i] != ranks * (ranks - 1) / 2 + ranks * static_cast<std::uint32_t>(i)) return false;
            return true;
          }};
}

TEST(Sequence, MixedCollectivesWithoutBarriers) {
  std::mt19937_64 random(15);
  for (int round = 0; round < test::repetitions(150); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    std::vector<std::vector<Task>> strands_of(nodes.size());
    std::vector<std::function<bool()>> correct;
    for (int number = 0; number < 8; ++number) {
      const int kind = static_cast<int>(random() % 7), root = static_cast<int>(random() % nodes.size());
      const PipelineSettings pipeline{static_cast<std::int64_t>(8 + random() % 3000),
                                      static_cast<int>(1 + random() % 3), 500};
      const std::int64_t most = std::vector<std::int64_t>{1, 100, 3000}[random() % 3];
      Sizes sizes(nodes.size(), most);
      for (auto& size : sizes)
        if (number % 2) size = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
      for (int rank = 0; rank < job.ranks(); ++rank) {
        Call call = kind == 0   ? a_share(job, rank, sizes, pipeline)
                    : kind == 1 ? a_broadcast(job, rank, root, sizes, pipeline)
                    : kind == 2 ? a_collect(job, rank, root, sizes, pipeline)
                    : kind == 3 ? a_distribute(job, rank, root, sizes, pipeline)
                    : kind == 4 ? an_exchange(job, rank, sizes[0], pipeline)
                                : a_sum(job, rank, root, kind == 5, sizes, pipeline);
        strands_of[static_cast<std::size_t>(rank)].push_back(std::move(call.task));
        correct.push_back(std::move(call.correct));
      }
    }
    std::vector<Task> tasks;
    for (auto& calls : strands_of) tasks.push_back(in_turn(std::move(calls)));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    for (std::size_t i = 0; i < correct.size(); ++i)
      ASSERT_TRUE(correct[i]()) << "round " << round << " call " << i / nodes.size();
  }
}

}  // namespace
}  // namespace bestride::inline collectives
