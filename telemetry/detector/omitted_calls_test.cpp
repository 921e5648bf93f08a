// SPDX-License-Identifier: Apache-2.0
// A rank that leaves out a collective call and goes on to one on another communicator.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

/// All ranks are members of a second communicator. Each call is made there, before one on MPI_COMM_WORLD.
class OmittedCalls : public Detection {
 protected:
  static constexpr std::uint32_t second = 1;
  OmittedCalls() { job.communicator(7, {0, 1, 2, 3}); }
  /// The call is complete.
  void made(int rank, const char* function, std::int32_t root = no_rank) {
    job.collective(rank, function, root, second);
    CallSnapshot call = *thread(rank).current;
    thread(rank).finished.push_back(call);
  }
};

TEST_F(OmittedCalls, OneNeighborIsPastIt) {
  made(0, "MPI_Neighbor_allgather");
  for (const int rank : {0, 2}) job.collective(rank, "MPI_Barrier");
  for (const int rank : {1, 3}) job.collective(rank, "MPI_Neighbor_allgather", no_rank, second);
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{2});
  ASSERT_TRUE(found.omitted);
  EXPECT_EQ(found.omitted->function, number_of("MPI_Neighbor_allgather"));
  EXPECT_EQ(found.omitted->communicator, 7u);
  EXPECT_EQ(found.omitted->ordinal, 1u);
  EXPECT_EQ(found.omitted->witness, 0);
  EXPECT_LT(found.confidence, 0.9);
}

/// Its root waits alone, and most ranks are in the barrier.
TEST_F(OmittedCalls, AReductionOfWhichOnlyTheRootWaits) {
  for (const int rank : {0, 3}) made(rank, "MPI_Reduce", 1);
  for (const int rank : {0, 2, 3}) job.collective(rank, "MPI_Barrier");
  job.collective(1, "MPI_Reduce", 1, second);
  EXPECT_TRUE(expect_one(observe(2), Fault::mismatch, Ranks{2}).omitted);
}

/// Nobody shows which order is right.
TEST_F(OmittedCalls, TwoInEach) {
  for (const int rank : {0, 2}) job.collective(rank, "MPI_Barrier");
  for (const int rank : {1, 3}) job.collective(rank, "MPI_Allreduce", no_rank, second);
  EXPECT_FALSE(expect_one(observe(2), Fault::deadlock, (Ranks{0, 1})).omitted);
}

}  // namespace
