// SPDX-License-Identifier: Apache-2.0
// Ranks that make calls and do not receive the messages of others.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

TEST_F(Detection, ARankThatServesOnlyTheOthers) {
  job.call(1, "MPI_Recv", 0);
  moving = {0, 2, 3};
  EXPECT_TRUE(observe(60).empty()) << "it waits for its next task";
  job.ranks[1].peers.push_back({no_index, 0, 5, 40, 0, 0});
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 4, 32});
  const Finding found = expect_one(observe(2), Fault::starvation, Ranks{0});
  EXPECT_EQ(found.held_up, Ranks{1});
}

/// It works with others before it receives.
TEST_F(PatientDetection, AMessageThatIsReceivedLaterIsNoFaultForAWhile) {
  job.call(1, "MPI_Recv", 0);
  job.ranks[1].peers.push_back({no_index, 0, 5, 40, 0, 0});
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 4, 32});
  moving = {0, 2, 3};
  EXPECT_TRUE(observe(55).empty());
  EXPECT_EQ(detector.working().at(0).fault, Fault::starvation);
  expect_one(observe(8), Fault::starvation, Ranks{0});
}

/// Rank 0 is always observed in its probe, which a message of rank 2 could match.
TEST_F(Detection, ARankThatProbesButServesOnlyTheOthers) {
  finished(1, "MPI_Send", 0, 7);
  job.call(1, "MPI_Recv", 0);
  job.ranks[1].peers.push_back({no_index, 0, 5, 40, 0, 0});
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 4, 32});
  job.call(0, "MPI_Probe", any_rank).tag = 7;
  moving = {0, 2, 3};
  for (int i = 0; i < 100; ++i) finished(0, "MPI_Probe", any_rank, 8);
  EXPECT_TRUE(observe(20).empty()) << "its message has another tag";
  for (int i = 0; i < 15; ++i) finished(0, "MPI_Probe", any_rank, 7);
  EXPECT_TRUE(observe(2).empty()) << "it may be the next one";
  finished(0, "MPI_Probe", any_rank, 7);
  expect_one(observe(0.5), Fault::starvation, Ranks{0});
  job.ranks[0].peers[0].received_messages = 5;
  EXPECT_TRUE(observe(0.5).empty());
}

/// Rank 1 is in its first send, which counts when it returns; rank 0 only looks for it, again and again.
TEST_F(PatientDetection, AMessageThatIsSeenAndNeverReceived) {
  job.call(1, "MPI_Ssend", 0).tag = 4;
  moving = {0, 2, 3};
  finished(0, "MPI_Iprobe", 1, 4);
  EXPECT_TRUE(observe(55).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].fault, Fault::starvation);
  expect_one(observe(8), Fault::starvation, Ranks{0});
}

/// Between its calls it may do other work.
TEST_F(PatientDetection, ARankThatPollsOnlyInactiveRequests) {
  for (const int rank : {0, 1, 3}) job.collective(rank, "MPI_Barrier");
  thread(2).polling = thread(2).polled_known = true;
  thread(2).poll_function = number_of("MPI_Testsome");
  EXPECT_TRUE(observe(55).empty());
  ASSERT_EQ(detector.working().size(), 1u);
  EXPECT_EQ(detector.working()[0].cause, Cause::polling);
  EXPECT_EQ(detector.working()[0].held_up, (Ranks{0, 1, 3}));
  expect_one(observe(8), Fault::computation_hang, Ranks{2});
}

}  // namespace
