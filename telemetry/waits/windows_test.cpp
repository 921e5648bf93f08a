// SPDX-License-Identifier: Apache-2.0
// Waits of calls on windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/waits/sample_job.hpp"
#include "telemetry/waits/sample_window.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {
namespace {

using Ranks = std::vector<std::int32_t>;

/// The ranks that the only thread of a rank needs.
Ranks needed(const SampleJob& job, int rank) {
  const WaitGraph graph = find_waits(job.ranks);
  Ranks result;
  each_needed(*graph.find(rank),
              [&](const RankSet& ranks) { result.insert(result.end(), ranks.begin(), ranks.end()); });
  return result;
}

TEST(Windows, StartWaitsForThePostOfItsGroup) {
  SampleJob job(3);
  add_window(job);
  epoch(job, 0, 1).starts = 1;
  epoch(job, 0, 2).starts = 1;
  epoch(job, 2, 0).posts = 1;
  job.call(0, "MPI_Win_start", no_rank, sample_window);
  EXPECT_EQ(needed(job, 0), Ranks{1});
  epoch(job, 1, 0).posts = 1;
  EXPECT_EQ(needed(job, 0), Ranks{});
  EXPECT_FALSE(find_waits(job.ranks).find(0)->threads.at(0).resolved) << "it may wait for data";
}

/// A rank that has posted for the last epoch has not posted for this one.
TEST(Windows, EpochsAreCounted) {
  SampleJob job(2);
  add_window(job);
  epoch(job, 0, 1) = {sample_window, 1, 0, 5, 4};
  epoch(job, 1, 0) = {sample_window, 0, 4, 0, 0};
  job.call(0, "MPI_Win_start", no_rank, sample_window);
  EXPECT_EQ(needed(job, 0), Ranks{1});
}

TEST(Windows, WaitNeedsTheCompleteOfItsGroup) {
  SampleJob job(3);
  add_window(job);
  epoch(job, 0, 1).posts = 2;
  epoch(job, 0, 2).posts = 1;
  epoch(job, 1, 0) = {sample_window, 0, 0, 2, 1};
  epoch(job, 2, 0) = {sample_window, 0, 0, 1, 1};
  job.call(0, "MPI_Win_wait", no_rank, sample_window);
  EXPECT_EQ(needed(job, 0), Ranks{1});
  job.leave(0);
  job.ranks[0].threads[0].polling = true;
  job.ranks[0].threads[0].poll_function = number_of("MPI_Win_test");
  EXPECT_EQ(needed(job, 0), Ranks{1});
}

TEST(Windows, EpochsThatDidNotFitAreNotKnown) {
  SampleJob job(2);
  add_window(job);
  epoch(job, 0, 1).starts = 1;
  job.ranks[1].epochs_dropped = 1;
  job.call(0, "MPI_Win_start", no_rank, sample_window);
  EXPECT_EQ(needed(job, 0), Ranks{});
}

TEST(Windows, LockAllWaitsForLocksOnly) {
  SampleJob job(3);
  add_window(job);
  finished(job, 1, "MPI_Win_lock", 2);
  finished(job, 2, "MPI_Win_lock_all", no_rank);
  job.call(0, "MPI_Win_lock_all", no_rank, sample_window);
  EXPECT_EQ(needed(job, 0), Ranks{1});
  finished(job, 1, "MPI_Win_unlock", 2);
  EXPECT_EQ(needed(job, 0), Ranks{});
}

/// The target need not call anything, but the library may need it.
TEST(Windows, DataMayWaitForATargetOutsideMpi) {
  SampleJob job(2);
  add_window(job);
  job.call(0, "MPI_Win_flush", 1, sample_window);
  WaitGraph graph = find_waits(job.ranks);
  ASSERT_NE(graph.edge(0, 1), nullptr);
  EXPECT_FALSE(graph.needs(0, 1));
  job.call(1, "MPI_Recv", 0);
  graph = find_waits(job.ranks);
  EXPECT_EQ(graph.edge(0, 1), nullptr);
  job.leave(1);
  job.leave(0);
  RequestSnapshot& request = job.request(0, "MPI_Rget", 1);
  request.communicator = sample_window;
  job.call(0, "MPI_Wait");
  EXPECT_NE(find_waits(job.ranks).edge(0, 1), nullptr);
}

}  // namespace
}  // namespace bestride::inline telemetry
