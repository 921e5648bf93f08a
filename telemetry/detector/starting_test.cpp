// SPDX-License-Identifier: Apache-2.0
// Ranks that have not called MPI_Init, or fail in it.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

class Starting : public PatientDetection {
 protected:
  /// Ranks 0, 1 and 3 are in MPI_Init.
  Starting() {
    job.ranks.erase(job.ranks.begin() + 2);
    for (RankSnapshot& rank : job.ranks) {
      rank.launch_rank = rank.world_rank;
      rank.launch_size = 4;
      rank.world_rank = -1;
      rank.world_size = 0;
      rank.state = ProcessState::starting;
    }
  }
};

TEST_F(Starting, ARankThatDoesNotCallInit) {
  EXPECT_TRUE(observe(3).empty());
  EXPECT_TRUE(detector.working().empty());
  EXPECT_TRUE(observe(50).empty());
  EXPECT_EQ(detector.working().at(0).culprits, Ranks{2});
  const Finding found = expect_one(observe(10), Fault::computation_hang, Ranks{2});
  EXPECT_EQ(found.cause, Cause::starting);
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 3}));
}

TEST_F(Starting, AllCallInitLate) {
  job.ranks.push_back(job.ranks[0]);
  job.ranks.back().pid = 1002;
  job.ranks.back().launch_rank = 2;
  EXPECT_TRUE(observe(100).empty());
  EXPECT_TRUE(detector.working().empty());
}

TEST_F(Starting, ALauncherThatDoesNotCount) {
  for (RankSnapshot& rank : job.ranks) rank.launch_size = 0, rank.launch_rank = -1;
  EXPECT_TRUE(observe(100).empty());
}

/// Its launcher ends the others.
TEST_F(Starting, ARankWhoseInitFails) {
  observe(1);
  for (RankSnapshot& rank : job.ranks) rank.alive = rank.visible = false, rank.wait_status = 9;
  note(1, EndKind::mpi_error, 0.1);
  const auto found = detector.observe({102, job.ranks, true});
  const Finding failed = expect_one(found, Fault::crash, Ranks{1});
  EXPECT_EQ(failed.cause, Cause::mpi_error);
  EXPECT_EQ(failed.held_up, (Ranks{0, 3}));
}

TEST_F(Starting, ARankThatExitsInInit) {
  observe(1);
  job.ranks[2].alive = job.ranks[2].visible = false;
  job.ranks[2].wait_status = 3 << 8;
  EXPECT_EQ(expect_one(observe(0.25), Fault::crash, Ranks{3}).cause, Cause::killed);
}

TEST_F(Starting, ARankThatEndsBeforeInit) {
  observe(1);
  for (RankSnapshot& rank : job.ranks) rank.alive = rank.visible = false;
  const auto found = detector.observe({102, job.ranks, true});
  EXPECT_EQ(expect_one(found, Fault::crash, Ranks{2}).cause, Cause::starting);
}

/// The process of rank 2 is known.
TEST_F(Starting, ARankThatComputesBeforeIt) {
  RankSnapshot before = SampleJob(4).ranks[2];
  before.unrecorded = before.visible = true;
  before.state = ProcessState::starting;
  before.pid = 1002;
  before.launch_rank = 2;
  before.launch_size = 4;
  before.world_rank = -1;
  job.ranks.push_back(before);
  EXPECT_TRUE(observe(50).empty());
  const Finding found = expect_one(observe(12), Fault::computation_hang, Ranks{2});
  EXPECT_EQ(found.cause, Cause::starting);
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 3}));
  EXPECT_EQ(found.confidence, 0.9);
}

TEST_F(Starting, ARankThatHasEndedBeforeIt) {
  observe(5);
  const Ranks ended = {2};
  EXPECT_TRUE(detector.observe({106, job.ranks, false, ended}).empty()) << "seen once";
  EXPECT_TRUE(detector.observe({107, job.ranks, false, {}}).empty());
  EXPECT_TRUE(detector.observe({108, job.ranks, false, ended}).empty());
  const Finding found = expect_one(detector.observe({109, job.ranks, false, ended}), Fault::crash, Ranks{2});
  EXPECT_TRUE(found.without_process);
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 3}));
  for (RankSnapshot& rank : job.ranks) rank.alive = rank.visible = false, rank.wait_status = 9;
  expect_one(detector.observe({110, job.ranks, true}), Fault::crash, Ranks{2});
}

}  // namespace
