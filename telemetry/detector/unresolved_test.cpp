// SPDX-License-Identifier: Apache-2.0
// Calls that do not end although nobody keeps them waiting, or for reasons that are not recorded.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

/// A call of a group, which the record does not have.
TEST_F(Detection, OthersWaitForRanksWhosePartnersAreNotKnown) {
  for (const int rank : {0, 1, 2}) job.call(rank, "MPI_Comm_create_group").communicator = 0;
  job.collective(3, "MPI_Barrier");
  const Finding found = expect_one(observe(12), Fault::communication_hang, Ranks{0, 1, 2});
  EXPECT_EQ(found.held_up, Ranks{3});
}

/// As for a generalized request.
TEST_F(Detection, ARankThatWaitsForNothingThatIsRecorded) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  job.call(2, "MPI_Wait");
  const Finding found = expect_one(observe(12), Fault::communication_hang, Ranks{2});
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 3}));
}

/// All have begun the first call, and only rank 3 has not left it: it waits for an edge that the others do not have.
TEST_F(Detection, ARankThatDoesNotLeaveTheCallBeforeTheOthers) {
  job.collective(3, "MPI_Neighbor_alltoall");
  for (const int rank : {0, 1, 2}) {
    job.collective(rank, "MPI_Neighbor_alltoall");
    job.collective(rank, "MPI_Barrier");
  }
  const Finding found = expect_one(observe(12), Fault::communication_hang, Ranks{3});
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 2}));
}

/// As one that reads a flag of a window, again and again.
TEST_F(PatientDetection, ARankThatMakesOtherCallsWhileAllOthersWait) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  moving = {2};
  EXPECT_TRUE(observe(55).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].culprits, Ranks{2});
  expect_one(observe(10), Fault::starvation, Ranks{2});
}

}  // namespace
