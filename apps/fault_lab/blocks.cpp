// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "phases.hpp"

namespace fault_lab {
namespace {

enum BlockMessage { block_exchanged, block_gathered };

/// Words from one rank to another: different for each pair, and never 0.
int count_of(int from, int to) { return 1 + (3 * from + 5 * to) % 4; }

struct Blocks {
  std::vector<int> counts, offsets;
  int total = 0;
  void add(int count) {
    counts.push_back(count);
    offsets.push_back(total);
    total += count;
  }
};

/// Every pair of ranks.
void alltoallv(Job& job) {
  Blocks out, in;
  Words sent, expected;
  const auto append = [&](Words& words, int from, int count) {
    const Words more = job.message(from, block_exchanged, std::size_t(count));
    words.insert(words.end(), more.begin(), more.end());
  };
  for (int peer = 0; peer < job.ranks; ++peer) {
    out.add(count_of(job.rank, peer));
    in.add(count_of(peer, job.rank));
    append(sent, job.rank, out.counts.back());
    append(expected, peer, in.counts.back());
  }
  Words received(expected.size());
  if (job.trigger(Kind::wrong_block)) out.counts[std::size_t((job.rank + 1) % job.ranks)] = 0;
  if (job.trigger(Kind::long_block)) ++out.counts[std::size_t((job.rank + 1) % job.ranks)];
  sent.push_back(0);  // of the block that is too long
  MPI_Alltoallv(sent.data(), out.counts.data(), out.offsets.data(), MPI_UINT64_T, received.data(), in.counts.data(),
                in.offsets.data(), MPI_UINT64_T, job.first);
  job.check("an alltoallv", received.data(), expected);
}

/// To rank 0 and back.
void gatherv_and_scatterv(Job& job) {
  Blocks all;
  for (int rank = 0; rank < job.ranks; ++rank) all.add(count_of(rank, 0));
  Words words(std::size_t(all.total));
  const Words own = job.message(job.rank, block_gathered, 8);
  int count = all.counts[std::size_t(job.rank)];
  if (job.trigger(Kind::wrong_gather_block)) count = 0;
  MPI_Gatherv(own.data(), count, MPI_UINT64_T, words.data(), all.counts.data(), all.offsets.data(), MPI_UINT64_T, 0,
              job.first);
  count = all.counts[std::size_t(job.rank)];
  Words back(8);
  std::vector<int> counts = all.counts;
  if (job.now(Kind::wrong_scatter_block) && job.trigger(Kind::wrong_scatter_block)) counts.back() = 0;
  MPI_Scatterv(words.data(), counts.data(), all.offsets.data(), MPI_UINT64_T, back.data(), count, MPI_UINT64_T, 0,
               job.first);
  job.check("a gatherv and a scatterv", back.data(), job.message(job.rank, block_gathered, std::size_t(count)));
}

}  // namespace

void blocks(Job& job) {
  if (job.trigger(Kind::late_blocks)) job.computation.run(job.options.pause_seconds);
  alltoallv(job);
  MPI_Barrier(job.second);
  gatherv_and_scatterv(job);
  MPI_Barrier(job.second);
}

}  // namespace fault_lab
