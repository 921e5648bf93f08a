// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests of the detector: a job that is observed again and again.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "telemetry/detector/detector.hpp"
#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {

using Ranks = std::vector<std::int32_t>;

class Detection : public testing::Test {
 protected:
  /// Ranks that work are given as little time as those that are blocked, unless a test says otherwise.
  explicit Detection(int size = 4, const Limits& limits = {.working = 4}) : job(size), detector(limits) {
    for (RankSnapshot& rank : job.ranks) {
      rank.visible = true;
      rank.pid = 1000 + rank.world_rank;
      rank.threads[0].state = 'R';
      rank.use.cpu_seconds = 0;
    }
  }
  /// Observes every 0.25 s until `seconds` later. Between observations, running ranks use the CPU.
  std::vector<Finding> observe(double seconds) {
    std::vector<Finding> found;
    for (const double until = now_ + seconds; now_ < until - 1e-9;) {
      now_ += 0.25;
      for (RankSnapshot& rank : job.ranks)
        if (rank.threads[0].state == 'R') rank.use.cpu_seconds += 0.25;
      for (const int rank : moving) ++job.ranks[static_cast<std::size_t>(rank)].threads[0].calls;
      found = detector.observe({now_, job.ranks});
      if (!found.empty() && first_ == 0) first_ = now_;
    }
    return found;
  }
  /// The observer does not observe for so long.
  void skip(double seconds) { now_ += seconds; }
  /// Ranks 2 and 3 are on another host; all ranks except 2 are in an allreduce.
  void wait_for_rank_2_on_another_host() {
    observe(1);
    for (const int rank : {2, 3}) job.ranks[static_cast<std::size_t>(rank)].remote = true;
    for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  }
  /// Each rank polls for a message of the next one.
  void poll_in_a_ring() {
    for (int rank = 0; rank < 4; ++rank) {
      RequestSnapshot& request = job.request(rank, "MPI_Irecv", (rank + 1) % 4);
      request.waiter = 0;
      request.poller = 1;
      thread(rank).polling = thread(rank).polled_known = thread(rank).polls_one = true;
      thread(rank).poll_function = number_of("MPI_Testall");
    }
  }
  /// The only finding.
  static Finding expect_one(const std::vector<Finding>& found, Fault fault, const Ranks& culprits) {
    EXPECT_EQ(found.size(), 1u);
    if (found.empty()) return {};
    EXPECT_EQ(found[0].fault, fault);
    EXPECT_EQ(found[0].culprits, culprits);
    return found[0];
  }
  /// A call on communicator 0 that the rank has finished.
  void finished(int rank, const char* function, std::int32_t peer, std::int32_t tag) {
    CallSnapshot call;
    call.function = number_of(function);
    call.communicator = 0;
    call.peer = peer;
    call.tag = tag;
    thread(rank).finished.push_back(call);
  }
  /// The rank has noted its end `seconds` before the next observation.
  void note(int rank, EndKind kind, double seconds) {
    RankSnapshot& each = job.ranks[static_cast<std::size_t>(rank)];
    each.ticks_per_second = 1e9;
    each.read_at = 10'000'000'000;
    each.end = EndSnapshot{kind, each.read_at - static_cast<std::uint64_t>(1e9 * seconds), 11, "a text\n"};
  }
  ThreadSnapshot& thread(int rank) { return job.ranks[static_cast<std::size_t>(rank)].threads[0]; }
  void leave_mpi(int rank) {
    thread(rank).in_mpi = false;
    thread(rank).current.reset();
    ++thread(rank).calls;
  }
  double first() const { return first_; }

  SampleJob job;
  Detector detector;
  std::vector<int> moving;  ///< ranks that make calls

 private:
  double now_ = 100, first_ = 0;
};

class PatientDetection : public Detection {
 protected:
  PatientDetection() : Detection(4, {}) {}
};

}  // namespace bestride::inline telemetry
