// SPDX-License-Identifier: Apache-2.0
#include "telemetry/mpi_time/job_time.hpp"

#include <gtest/gtest.h>

#include <random>

#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr double ticks_per_second = 1e9;

/// A job whose clock has nanoseconds as ticks and whose ranks have ended after `seconds`.
SampleJob ended_job(int size, double seconds) {
  SampleJob job(size);
  for (RankSnapshot& rank : job.ranks) {
    rank.ticks_per_second = ticks_per_second;
    rank.anchor_ticks = 1000;
    rank.anchor_realtime = 50'000'000'000;
    rank.alive = false;
    rank.state = ProcessState::finalized;
    rank.threads[0].last_left = 1000 + static_cast<std::uint64_t>(seconds * ticks_per_second);
    rank.modules.push_back({0, {1, 2, 3}, "/usr/bin/solver"});
  }
  return job;
}

SiteSnapshot site(std::uint64_t address, const std::string& function, std::uint64_t calls, std::uint32_t timed,
                  double timed_seconds) {
  SiteSnapshot made;
  made.address = address;
  made.module = 0;
  made.function = number_of(function);
  made.calls = calls;
  made.bytes = 8 * calls;
  made.ticks = static_cast<std::uint64_t>(timed_seconds * ticks_per_second);
  made.most_ticks = made.ticks;
  made.histogram[3] = timed;
  return made;
}

/// A timed call that waited for a processor stands for many that did not.
TEST(JobTime, ScaledTimesAreNoLongerThanTheJob) {
  SampleJob job = ended_job(2, 10);
  job.ranks[0].sites = {site(16, "MPI_Allreduce", 100, 100, 4.0), site(32, "MPI_Isend", 6400, 100, 1.0)};
  job.ranks[1].sites = {site(16, "MPI_Allreduce", 100, 100, 11.0)};  // threads that wait at the same time
  const JobTime time = measure_job(job.ranks, 0);
  EXPECT_DOUBLE_EQ(time.ranks[0].mpi.seconds, 10);
  EXPECT_DOUBLE_EQ(time.ranks[1].mpi.seconds, 11);
  ASSERT_EQ(time.sites.size(), 2u);
  EXPECT_DOUBLE_EQ(time.sites[0].sums.seconds, 15) << "what was measured remains";
  EXPECT_DOUBLE_EQ(time.sites[1].sums.seconds, 6);
}

TEST(JobTime, TimesAreScaledFromTimedCallsToAllCalls) {
  SampleJob job = ended_job(2, 20);
  job.ranks[0].sites = {site(16, "MPI_Allreduce", 1000, 1000, 2.0), site(32, "MPI_Isend", 1600, 100, 0.1)};
  job.ranks[1].sites = {site(32, "MPI_Isend", 64, 1, 0.25), site(16, "MPI_Allreduce", 4000, 1000, 1.0)};
  job.ranks[1].sampling = 4;
  const JobTime time = measure_job(job.ranks, 0);
  ASSERT_EQ(time.ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(time.ranks[0].mpi.seconds, 2.0 + 1.6);
  EXPECT_DOUBLE_EQ(time.ranks[1].mpi.seconds, 16.0 + 4.0);
  EXPECT_DOUBLE_EQ(time.ranks[0].seconds, 20);
  EXPECT_DOUBLE_EQ(time.seconds, 20);
  ASSERT_EQ(time.sites.size(), 2u);
  EXPECT_EQ(time.sites[0].function, number_of("MPI_Isend"));
  EXPECT_DOUBLE_EQ(time.sites[0].sums.seconds, 17.6);
  EXPECT_EQ(time.sites[1].sums.calls, 5000u);
  EXPECT_EQ(time.sites[1].least_rank, 0);
  EXPECT_EQ(time.sites[1].most_rank, 1);
  EXPECT_DOUBLE_EQ(time.sites[1].variation, 1.0 / 3);  // 2 s and 4 s
  EXPECT_EQ(time.least()->rank, 0);
  EXPECT_EQ(time.most()->rank, 1);
}

TEST(JobTime, ACallThatDidNotReturnCountsUpToTheEndOfItsRank) {
  SampleJob job = ended_job(1, 1);
  RankSnapshot& rank = job.ranks[0];
  rank.state = ProcessState::initialized;
  rank.ended = 7;  // the observer began at 49 s, so this is 6 s after MPI_Init
  rank.sites = {site(16, "MPI_Recv", 3, 3, 0.5)};
  CallSnapshot& call = job.call(0, "MPI_Recv", 0);
  call.site = 0;
  call.entered = 1000 + 2'000'000'000;
  const JobTime time = measure_job(job.ranks, 49);
  EXPECT_DOUBLE_EQ(time.ranks[0].seconds, 6);
  EXPECT_DOUBLE_EQ(time.ranks[0].mpi.seconds, 4.5);
  EXPECT_EQ(time.ranks[0].mpi.calls, 4u);
  EXPECT_TRUE(time.ranks[0].incomplete);
  EXPECT_DOUBLE_EQ(time.sites[0].most_seconds, 4);
}

TEST(JobTime, PlacesThatWereNeverTimedHaveNoTimeAndAreCounted) {
  SampleJob job = ended_job(1, 1);
  job.ranks[0].sites = {site(16, "MPI_Isend", 9, 0, 0)};
  const JobTime time = measure_job(job.ranks, 0);
  EXPECT_EQ(time.untimed, 9u);
  EXPECT_EQ(time.mpi.calls, 9u);
  EXPECT_EQ(time.mpi.seconds, 0);
}

TEST(JobTime, NoRanks) {
  const JobTime time = measure_job({}, 0);
  EXPECT_TRUE(time.ranks.empty());
  EXPECT_EQ(time.least(), nullptr);
  EXPECT_EQ(time.mean_share(), 0);
  EXPECT_EQ(time.seconds, 0);
}

TEST(JobTime, PeersThroughCommunicatorsAreRanksOfTheWorld) {
  SampleJob job = ended_job(4, 1);
  job.communicator(77, {3, 1});
  job.ranks[3].peers = {{no_index, 1, 2, 20, 0, 0}, {1, 1, 3, 30, 0, 0}, {no_index, 0, 0, 0, 5, 5}};
  const JobTime time = measure_job(job.ranks, 0);
  ASSERT_EQ(time.pairs.size(), 1u);
  EXPECT_EQ(time.pairs[0].from, 3);
  EXPECT_EQ(time.pairs[0].to, 1);
  EXPECT_EQ(time.pairs[0].messages, 5u);
  EXPECT_EQ(time.pairs[0].bytes, 50u);
}

TEST(JobTime, WaitInACollectiveCallIsTheTimeUntilTheLastMemberEnters) {
  SampleJob job = ended_job(3, 10);
  const auto finished = [&](int rank, std::uint64_t entered, std::uint64_t left, std::uint32_t ordinal) {
    CallSnapshot call;
    call.function = number_of("MPI_Allreduce");
    call.communicator = 0;
    call.ordinal = ordinal;
    call.entered = entered * 1'000'000'000;
    call.left = left == 1 ? 1 : left * 1'000'000'000;
    job.ranks[static_cast<std::size_t>(rank)].threads[0].finished.push_back(call);
  };
  finished(0, 1, 6, 1), finished(1, 2, 6, 1), finished(2, 5, 6, 1);
  finished(0, 7, 8, 2), finished(1, 7, 1, 2), finished(2, 7, 8, 2);  // rank 1 was not timed
  const CollectiveWait wait = measure_collective_wait(job.ranks);
  EXPECT_EQ(wait.instances, 1u);
  EXPECT_NEAR(wait.seconds, 5 + 4 + 1, 1e-6);
  EXPECT_NEAR(wait.waited, 4 + 3, 1e-6);
  job.ranks[0].anchor_realtime += 900'000'000;  // two processes read their clocks differently
  EXPECT_NEAR(measure_collective_wait(job.ranks).waited, 4 + 3, 1e-6);
  job.ranks[2].host = "node2";  // its clock is another one
  EXPECT_EQ(measure_collective_wait(job.ranks).instances, 0u);
}

/// For random records the sums over ranks, over places and over functions are the same, and no order of the ranks
/// changes them.
TEST(JobTime, SumsOverRanksPlacesAndFunctionsAreEqual) {
  std::mt19937 random(7);
  const char* const functions[] = {"MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Wait"};
  for (int round = 0; round < 200; ++round) {
    SampleJob job = ended_job(1 + static_cast<int>(random() % 9), 5);
    std::uint64_t calls = 0, bytes = 0;
    for (RankSnapshot& rank : job.ranks)
      for (std::uint64_t i = 0; i < random() % 12; ++i) {
        const std::uint32_t timed = random() % 50;
        const std::uint64_t made = timed + random() % 1000;
        rank.sites.push_back(site(16 * i, functions[i % 4], made, timed, timed * 1e-3));
        calls += made;
        bytes += 8 * made;
      }
    const JobTime time = measure_job(job.ranks, 0);
    CallSums ranks, sites, by_function;
    for (const RankTime& rank : time.ranks) ranks.add(rank.mpi);
    for (const SiteTime& found : time.sites) {
      sites.add(found.sums);
      EXPECT_LE(found.least_total, found.most_total);
      EXPECT_LE(found.sums.seconds, found.most_total * static_cast<double>(time.ranks.size()) * (1 + 1e-12));
      EXPECT_LE(found.variation, std::sqrt(static_cast<double>(time.ranks.size())));
    }
    for (const FunctionTime& found : time.functions) by_function.add(found.sums);
    for (const CallSums& sums : {ranks, sites, by_function}) {
      EXPECT_EQ(sums.calls, calls);
      EXPECT_EQ(sums.bytes, bytes);
      EXPECT_EQ(sums.timed, time.mpi.timed);
      EXPECT_NEAR(sums.seconds, time.mpi.seconds, 1e-9 * (1 + time.mpi.seconds));
    }
    std::shuffle(job.ranks.begin(), job.ranks.end(), random);
    const JobTime again = measure_job(job.ranks, 0);
    ASSERT_EQ(again.sites.size(), time.sites.size());
    for (std::size_t i = 0; i < time.sites.size(); ++i)
      EXPECT_NEAR(again.sites[i].sums.seconds, time.sites[i].sums.seconds, 1e-9);
  }
}

}  // namespace
}  // namespace bestride::inline telemetry
