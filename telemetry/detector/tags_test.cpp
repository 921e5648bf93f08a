// SPDX-License-Identifier: Apache-2.0
// Which side of a message names the wrong tag.
#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

/// In each step, rank 0 sends to rank 1, which answers. In the last one, both wait.
class Tags : public Detection {
 protected:
  template <class TagOf>
  void steps(TagOf tag_of, std::int32_t awaited) {
    constexpr int count = 5;
    for (int step = 0; step < count; ++step) {
      finished(0, "MPI_Send", 1, tag_of(step));
      finished(1, "MPI_Recv", 0, tag_of(step));
      finished(1, "MPI_Send", 0, tag_of(step));
      finished(0, "MPI_Recv", 1, tag_of(step));
    }
    finished(0, "MPI_Send", 1, tag_of(count));
    job.ranks[0].peers.push_back({no_index, 1, count + 1, 0, count, 0});
    job.ranks[1].peers.push_back({no_index, 0, count, 0, count, 0});
    job.call(0, "MPI_Recv", 1).tag = tag_of(count);
    job.call(1, "MPI_Recv", 0).tag = awaited;
  }
  static std::int32_t constant(int) { return 100; }
  static std::int32_t growing(int step) { return 100 + step; }
};

TEST_F(Tags, AReceiverThatNamesOneThatItHasNeverUsed) {
  steps(constant, 10);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 100);
  EXPECT_EQ(found.tags->wanted, 10);
}

TEST_F(Tags, AReceiverThatNamesOneOfAnEarlierStep) {
  steps(growing, 104);
  expect_one(observe(2), Fault::unmatched_message, Ranks{1});
}

/// Its receiver goes on as before.
TEST_F(Tags, ASenderThatNamesAnotherOne) {
  steps([](int step) { return step == 5 ? 10 : 100; }, 100);
  expect_one(observe(2), Fault::unmatched_message, Ranks{0});
}

/// Each step has a tag of its own, and the receive that waits is posted.
TEST_F(Tags, ASenderThatNamesAnotherOneThanThePostedReceive) {
  steps([](int step) { return step == 5 ? 777 : 100 + step; }, 105);
  thread(1).current.reset();
  finished(1, "MPI_Irecv", 0, 105);
  job.call(1, "MPI_Wait");
  job.request(1, "MPI_Irecv", 0).tag = 105;
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{0});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 777);
  EXPECT_FALSE(found.tags->by_receiver);
}

TEST_F(Tags, ASenderThatNamesAnotherOneAndFinalizes) {
  steps([](int step) { return step == 5 ? 10 : 100; }, 100);
  for (const int rank : {0, 2, 3}) {
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalizing;
    job.collective(rank, "MPI_Finalize");
  }
  const Finding found = expect_one(observe(6), Fault::unmatched_message, Ranks{0});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 10);
  EXPECT_EQ(found.tags->wanted, 100);
}

/// All messages were on MPI_COMM_WORLD, until it probes another one.
TEST_F(Tags, AReceiverThatNamesAnotherCommunicator) {
  job.communicator(7, {0, 1, 2, 3});
  steps(constant, 100);
  job.call(1, "MPI_Probe", 0, 1).tag = 100;
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  ASSERT_TRUE(found.tags);
  EXPECT_TRUE(found.tags->other_communicator);
  EXPECT_TRUE(found.tags->by_receiver);
}

/// It has received both before, so the message may be meant for a later receive.
TEST_F(Tags, BothAreUsual) {
  for (int i = 0; i < 3; ++i) finished(1, "MPI_Recv", 0, 10);
  steps(constant, 10);
  expect_one(observe(2), Fault::deadlock, (Ranks{0, 1}));
}

}  // namespace
