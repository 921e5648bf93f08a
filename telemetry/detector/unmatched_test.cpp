// SPDX-License-Identifier: Apache-2.0
// Verdicts about messages between two ranks, and about ranks that poll.
#include <map>
#include <utility>

#include "telemetry/detector/detection_fixture.hpp"

using namespace bestride;

namespace {

class Messages : public Detection {
 protected:
  /// The rank polls requests and probes, which are known.
  void poll(int rank, const char* function, bool one = false) {
    ThreadSnapshot& polling = thread(rank);
    polling.polling = polling.polled_known = true;
    polling.polls_one = one;
    polling.poll_function = number_of(function);
  }
  RequestSnapshot& polled_request(int rank, const char* function, std::int32_t peer) {
    RequestSnapshot& made = job.request(rank, function, peer);
    made.waiter = 0;
    made.poller = 1;
    return made;
  }
  void probe(int rank, std::int32_t peer, std::int32_t tag) {
    thread(rank).probes.push_back({number_of("MPI_Iprobe"), 0, peer, tag});
  }
  /// It has begun the next collective call of communicator 0, which is not complete.
  void polled_barrier(int rank) {
    CommunicatorSnapshot& world = job.ranks[static_cast<std::size_t>(rank)].communicators[0];
    polled_request(rank, "MPI_Ibarrier", no_rank).ordinal = static_cast<std::uint32_t>(++world.collectives);
  }
  void receive(int rank, std::int32_t from, std::int32_t tag) { job.call(rank, "MPI_Recv", from).tag = tag; }
  /// `from` has sent `to` so many messages, of which so many were received.
  void count(int from, int to, std::uint64_t sent, std::uint64_t received) {
    job.ranks[static_cast<std::size_t>(from)].peers.push_back(
        {no_index, static_cast<std::uint32_t>(to), sent, 8 * sent, 0, 0});
    job.ranks[static_cast<std::size_t>(to)].peers.push_back(
        {no_index, static_cast<std::uint32_t>(from), 0, 0, received, 8 * received});
  }
  /// All barriers are at the same place.
  void in_barrier(const Ranks& ranks) {
    for (const int rank : ranks) job.collective(rank, "MPI_Barrier").site = 0;
  }
  /// It has finished a message, and a barrier.
  void step(int rank, const char* function, std::int32_t peer, std::int32_t tag = 1) {
    finished(rank, function, peer, tag);
    barrier(rank);
  }
  void barrier(int rank) {
    finished(rank, "MPI_Barrier", no_rank, no_tag);
    thread(rank).finished.back().site = 0;
    thread(rank).finished.back().ordinal = 1000 + static_cast<std::uint32_t>(thread(rank).finished.size());
  }
};

/// Rank 3 polls for a message that nobody sends, instead of the barrier that the others poll.
TEST_F(Messages, APolledBarrierThatARankDoesNotEnter) {
  for (const int rank : {0, 1, 2}) {
    poll(rank, "MPI_Test");
    polled_barrier(rank);
    probe(rank, any_rank, 7);
  }
  poll(3, "MPI_Iprobe", true);
  probe(3, any_rank, 7);
  const Finding found = expect_one(observe(6), Fault::unmatched_message, Ranks{3});
  EXPECT_TRUE(found.alone);
  EXPECT_EQ(found.held_up, (Ranks{0, 1, 2}));
  EXPECT_LT(found.confidence, 0.7);
}

/// Rank 3 may look for other events between its probes.
class Patience : public Detection {
 protected:
  Patience() : Detection(4, {}) {}
};
TEST_F(Patience, ARankThatOnlyProbesMayGoOnByItself) {
  for (const int rank : {0, 1, 2}) job.collective(rank, "MPI_Barrier");
  thread(3).polling = thread(3).polled_known = thread(3).polls_one = true;
  thread(3).poll_function = number_of("MPI_Iprobe");
  thread(3).probes.push_back({number_of("MPI_Iprobe"), 0, any_rank, 7});
  EXPECT_TRUE(observe(55).empty());
  const Finding found = expect_one(observe(10), Fault::unmatched_message, Ranks{3});
  EXPECT_TRUE(found.alone);
}

TEST_F(Messages, APolledBarrierForWhichARankComputes) {
  for (const int rank : {0, 1, 2}) {
    poll(rank, "MPI_Test");
    polled_barrier(rank);
    probe(rank, any_rank, 7);
  }
  expect_one(observe(6), Fault::computation_hang, Ranks{3});
}

TEST_F(Messages, WhatIsPolledIsNotKnown) {
  for (const int rank : {0, 1, 2, 3}) {
    poll(rank, "MPI_Test", true);
    polled_request(rank, "MPI_Irecv", (rank + 1) % 4);
    thread(rank).polled_known = false;
  }
  EXPECT_TRUE(observe(30).empty());
}

/// Rank 2 has forgotten a receive from rank 3; what it polls is a message of rank 1.
TEST_F(Messages, ARequestThatIsForgottenExplainsNothing) {
  in_barrier({0, 1, 3});
  job.request(2, "MPI_Irecv", 3).waiter = 0;
  poll(2, "MPI_Test", true);
  polled_request(2, "MPI_Irecv", 1);
  expect_one(observe(6), Fault::unmatched_message, Ranks{1});
}

TEST_F(Messages, OneOfSeveralPolledMessagesMayCome) {
  in_barrier({0, 1});
  poll(2, "MPI_Testany", true);
  polled_request(2, "MPI_Irecv", 1);
  polled_request(2, "MPI_Irecv", 3);  // which computes
  thread(3).state = 'S';
  const auto found = observe(8);
  for (const Finding& each : found) EXPECT_EQ(each.culprits, Ranks{3});
  EXPECT_FALSE(found.empty());
}

TEST_F(Messages, AllOfSeveralPolledMessagesMustCome) {
  in_barrier({0, 1, 3});
  poll(2, "MPI_Testall", true);
  polled_request(2, "MPI_Irecv", 1);
  polled_request(2, "MPI_Irecv", 0);
  count(1, 2, 1, 1);
  count(0, 2, 0, 1);  // rank 0 has sent nothing
  expect_one(observe(6), Fault::unmatched_message, Ranks{0});
}

/// Rank 1 has sent rank 2 a message that is received last, and waits for rank 0, which has left its message out.
TEST_F(Messages, ASenderThatWaitsItselfIsNotAccused) {
  job.collective(0, "MPI_Barrier");
  receive(1, 0, 1);
  finished(1, "MPI_Send", 2, 9);
  receive(2, 1, 1);
  receive(3, 2, 1);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{0});
  EXPECT_FALSE(found.tags);
}

/// The same, but rank 0 computes.
TEST_F(Messages, ASenderThatWaitsForARankThatHangsIsNotAccused) {
  receive(1, 0, 1);
  finished(1, "MPI_Send", 2, 9);
  receive(2, 1, 1);
  receive(3, 2, 1);
  expect_one(observe(8), Fault::computation_hang, Ranks{0});
}

/// Rank 2 is blocked in its send to rank 1, which first receives the message that rank 0 has left out.
TEST_F(Messages, ARankThatReceivesLaterIsNotAccused) {
  job.collective(0, "MPI_Barrier");
  receive(1, 0, 1);
  job.call(2, "MPI_Ssend", 1).tag = 9;
  receive(3, 2, 1);
  expect_one(observe(2), Fault::unmatched_message, Ranks{0});
}

TEST_F(Messages, AnotherTagLongAgo) {
  in_barrier({0, 1, 3});
  finished(3, "MPI_Send", 2, 9);
  for (int i = 0; i < 900; ++i) finished(3, "MPI_Send", 2, 5);
  for (int i = 0; i < 900; ++i) finished(2, "MPI_Recv", 3, 5);
  count(3, 2, 901, 900);
  receive(2, 3, 4);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{3});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 9);
  EXPECT_EQ(found.tags->wanted, 4);
}

/// The receiver does not remember it, but has received as many messages as were sent.
TEST_F(Messages, AMessageWithAnotherTagThatWasReceivedLongAgo) {
  in_barrier({0, 1, 3});
  finished(3, "MPI_Send", 2, 9);
  count(3, 2, 1, 1);
  receive(2, 3, 4);
  EXPECT_FALSE(expect_one(observe(2), Fault::unmatched_message, Ranks{3}).tags);
}

TEST_F(Messages, AMessageOnAnotherCommunicator) {
  job.communicator(7, {0, 1, 2, 3});
  in_barrier({0, 1, 3});
  finished(3, "MPI_Send", 2, 4);
  thread(3).finished.back().communicator = 1;
  receive(2, 3, 4);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{3});
  ASSERT_TRUE(found.tags);
  EXPECT_TRUE(found.tags->other_communicator);
}

/// Rank 0 has always received from rank 3, and rank 1 has always sent to rank 2.
TEST_F(Messages, AReceiveFromTheWrongRank) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Send", 2);
  finished(1, "MPI_Send", 2, 1);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{0}).alone);
}

TEST_F(Messages, AReceiveTooMany) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Send", 0);
  finished(1, "MPI_Send", 0, 1);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{0}).alone);
}

TEST_F(Messages, AMessageForTheWrongRank) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Send", 0);
  finished(1, "MPI_Send", 3, 1);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  EXPECT_FALSE(found.alone);
  EXPECT_GT(found.confidence, 0.7);
}

/// The tag is the number of the step.
TEST_F(Messages, AMessageThatIsMissingInAStepWithATagOfItsOwn) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Send", 0, 10 + i);
  in_barrier({1, 2, 3});
  receive(0, 1, 13);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  EXPECT_FALSE(found.alone);
}

TEST_F(Messages, AMessageWithAnotherTagThanThatOfTheStep) {
  for (int i = 0; i < 3; ++i) {
    step(1, "MPI_Send", 0, 10 + i);
    step(0, "MPI_Recv", 1, 10 + i);
  }
  finished(1, "MPI_Send", 0, 99);
  in_barrier({1, 2, 3});
  receive(0, 1, 13);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 99);
}

TEST_F(Messages, AMessageThatIsNotAlwaysSent) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Send", i % 2 ? 0 : 3);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  EXPECT_LE(found.confidence, 0.7);
}

/// Neither the start of a persistent request nor a buffered send shows to which rank it sends.
TEST_F(Messages, AMessageThatIsUsuallySentInAHiddenWay) {
  for (const char* function : {"MPI_Start", "MPI_Bsend"})
    for (int i = 0; i < 2; ++i) step(1, function, no_rank);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{1});
  EXPECT_LE(found.confidence, 0.7);
}

TEST_F(Messages, ASynchronousSendToTheWrongRank) {
  for (int i = 0; i < 3; ++i) step(1, "MPI_Recv", 2);
  finished(1, "MPI_Recv", 2, 1);
  in_barrier({1, 2, 3});
  job.call(0, "MPI_Ssend", 1).tag = 1;
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{0}).alone);
}

/// No request of MPI_Waitany is complete, or it would return. It rather left out the barrier than both others a
/// message.
TEST_F(Messages, NoneOfTwoMessagesCanCome) {
  in_barrier({0, 1, 3});
  job.call(2, "MPI_Waitany");
  job.request(2, "MPI_Irecv", 1);
  job.request(2, "MPI_Irecv", 3);
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{2}).alone);
}

/// Rank 2 has gone on to the next message.
TEST_F(Messages, ABarrierThatIsLeftOut) {
  for (int i = 0; i < 3; ++i) step(2, "MPI_Send", 1);
  finished(2, "MPI_Send", 1, 1);
  in_barrier({0, 1, 3});
  job.call(2, "MPI_Ssend", 1).tag = 1;
  const Finding found = expect_one(observe(2), Fault::mismatch, Ranks{2});
  ASSERT_TRUE(found.omitted);
  EXPECT_EQ(found.omitted->function, number_of("MPI_Barrier"));
  EXPECT_EQ(found.omitted->since, 2);
  EXPECT_EQ(found.omitted->usual, 1);
  EXPECT_LT(found.confidence, 0.9);
}

/// As in an exchange of messages whose receivers do not know of them before: all others probe for messages, too.
TEST_F(Messages, APolledBarrierThatIsLeftOut) {
  for (int i = 0; i < 3; ++i) {
    step(2, "MPI_Issend", 1);
    thread(2).finished.back().function = number_of("MPI_Ibarrier");
  }
  for (int i = 0; i < 2; ++i) finished(2, "MPI_Issend", 1, 5);
  for (const int rank : {0, 1, 3}) {
    poll(rank, "MPI_Test");
    polled_barrier(rank);
    probe(rank, any_rank, 4);
  }
  poll(2, "MPI_Test");
  polled_request(2, "MPI_Issend", 1).tag = 5;
  probe(2, any_rank, 5);
  EXPECT_TRUE(expect_one(observe(6), Fault::mismatch, Ranks{2}).omitted);
}

/// Rank 2 has left the exchange without receiving the message of rank 1, for which only rank 0 does not wait.
TEST_F(Messages, ABarrierThatIsLeftOutByOneOfTwoThatWaitForEachOther) {
  for (const int rank : {1, 2})
    for (int i = 0; i < 3; ++i) step(rank, "MPI_Issend", 3 - rank);
  for (int i = 0; i < 2; ++i) finished(2, "MPI_Issend", 1, 5 + i);
  finished(1, "MPI_Issend", 2, 5);
  in_barrier({0, 3});
  job.call(1, "MPI_Wait");
  job.request(1, "MPI_Issend", 2).tag = 5;
  job.call(2, "MPI_Wait");
  job.request(2, "MPI_Issend", 1).tag = 6;
  EXPECT_TRUE(expect_one(observe(2), Fault::mismatch, Ranks{2}).omitted);
}

/// Rank 0 begins its usual receives and one more, before it completes any.
TEST_F(Messages, AReceiveTooManyIsNoBarrierThatIsLeftOut) {
  const auto receives = [this](int count) {
    for (int i = 0; i < count; ++i) finished(0, "MPI_Irecv", std::min(i + 1, 3), 7);
    for (int i = 0; i < 3; ++i) finished(0, "MPI_Waitany", no_rank, no_tag);
  };
  for (int i = 0; i < 3; ++i) {
    for (const int rank : {1, 2, 3}) step(rank, "MPI_Send", 0, 7);
    receives(3);
    barrier(0);
  }
  receives(4);
  for (const int rank : {1, 2, 3}) finished(rank, "MPI_Send", 0, 7);
  in_barrier({1, 2, 3});
  job.call(0, "MPI_Waitany");
  job.request(0, "MPI_Irecv", 3).tag = 7;
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{0});
  EXPECT_TRUE(found.alone);
  EXPECT_FALSE(found.omitted);
}

/// The same of blocking receives, each at its own place but the last two.
TEST_F(Messages, AReceiveTooManyInALoop) {
  const auto receive_from = [this](std::int32_t peer, std::uint32_t site) {
    finished(0, "MPI_Recv", peer, 7);
    thread(0).finished.back().site = site;
  };
  for (int i = 0; i < 3; ++i) {
    receive_from(1, 1);
    step(0, "MPI_Recv", 3, 7);
    thread(0).finished[thread(0).finished.size() - 2].site = 2;
    step(3, "MPI_Send", 0, 7);
  }
  receive_from(1, 1), receive_from(3, 2);
  finished(3, "MPI_Send", 0, 7);
  in_barrier({1, 2, 3});
  receive(0, 3, 7);
  thread(0).current->site = 2;
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{0}).alone);
}

/// Rank 2 has come as far as usual: rank 1 has left out a receive.
TEST_F(Messages, ABarrierThatIsNotReachedYet) {
  for (int i = 0; i < 3; ++i) step(2, "MPI_Send", 1);
  in_barrier({0, 1, 3});
  job.call(2, "MPI_Ssend", 1).tag = 1;
  expect_one(observe(2), Fault::unmatched_message, Ranks{1});
}

/// Numbers of messages that vary show nothing, but rank 1 usually receives one.
TEST_F(Messages, ABarrierAfterAnyNumberOfMessages) {
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < i; ++k) finished(2, "MPI_Send", 1, 1);
    step(2, "MPI_Send", 1);
    step(1, "MPI_Recv", 2);
  }
  for (int i = 0; i < 4; ++i) finished(2, "MPI_Send", 1, 1);
  in_barrier({0, 1, 3});
  job.call(2, "MPI_Ssend", 1).tag = 1;
  expect_one(observe(2), Fault::unmatched_message, Ranks{1});
}

/// Python's objects are received in a way that does not show from which rank; this tells nothing of what is sent.
TEST_F(Messages, HiddenReceivesHideNoSends) {
  for (int i = 0; i < 3; ++i) {
    finished(1, "MPI_Mrecv", no_rank, no_tag);
    step(1, "MPI_Send", 3);
  }
  finished(1, "MPI_Send", 3, 1);
  in_barrier({1, 2, 3});
  receive(0, 1, 1);
  EXPECT_TRUE(expect_one(observe(2), Fault::unmatched_message, Ranks{0}).alone);
}

/// Rank 2 waits for messages of ranks 1 and 3. Rank 1 has sent its own, and one for a later step. Rank 3 still sends
/// one that rank 2 does not receive.
TEST_F(Messages, AMessageThatHasArrivedExplainsNothing) {
  finished(1, "MPI_Send", 2, 6);
  finished(1, "MPI_Send", 2, 7);
  count(1, 2, 2, 1);
  job.call(2, "MPI_Waitall");
  job.request(2, "MPI_Irecv", 1).tag = 6;
  job.request(2, "MPI_Irecv", 3).tag = 6;
  job.call(3, "MPI_Ssend", 2).tag = 5;
  receive(1, 2, 7);
  receive(0, 1, 7);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{3});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 5);
}

/// Rank 2 has sent messages for later steps after one with another tag.
TEST_F(Messages, TheOldestOfSeveralMessagesWithOtherTags) {
  in_barrier({0, 1});
  for (const int tag : {35, 36}) {
    finished(2, "MPI_Send", 3, tag);
    finished(3, "MPI_Recv", 2, tag);
  }
  for (const int tag : {1037, 38, 39}) finished(2, "MPI_Send", 3, tag);
  count(2, 3, 5, 2);
  receive(3, 2, 37);
  receive(2, 3, 40);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{2});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 1037);
}

/// Each step has a tag. Rank 2 sends rank 0 a message and then rank 1, but not in step 5.
class StepTags : public Messages {
 protected:
  void step_of_2(int tag, int to_1) {
    finished(2, "MPI_Send", 0, tag);
    if (to_1 >= 0) finished(2, "MPI_Send", 1, to_1);
  }
  /// Ranks 1 and 2 wait for each other.
  Finding observe_two(int sent, int wanted_by_2) {
    count(2, 1, 2 + static_cast<std::uint64_t>(sent), 2);
    count(2, 0, 4, 4);
    receive(1, 2, 5);
    receive(2, 1, wanted_by_2);
    for (const int rank : {0, 3}) receive(rank, 1, 9);
    const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{2});
    EXPECT_TRUE(found.tags);
    return found;
  }
};

TEST_F(StepTags, AMessageThatIsLeftOutIsNotOneWithAWrongTag) {
  for (const int tag : {3, 4}) step_of_2(tag, tag);
  step_of_2(5, -1);
  step_of_2(6, 6);
  const Finding found = observe_two(1, 6);
  EXPECT_TRUE(found.tags->left_out);
  EXPECT_EQ(found.tags->wanted, 5);
  EXPECT_GT(found.confidence, 0.7);
}

TEST_F(StepTags, AMessageWithTheTagOfTheNextStepHasAWrongTag) {
  for (const int tag : {3, 4}) step_of_2(tag, tag);
  step_of_2(5, 6);
  finished(2, "MPI_Send", 0, 6);
  const Finding found = observe_two(1, 5);
  EXPECT_FALSE(found.tags->left_out);
  EXPECT_LT(found.confidence, 0.8);
}

/// Of a pipeline, each rank of which receives before it sends.
TEST_F(StepTags, TheOrderOfTheLastStepTellsWhichOfTwoStepsAMessageIsOf) {
  for (const int tag : {3, 4, 5}) {
    finished(2, "MPI_Recv", 1, tag);
    finished(2, "MPI_Send", 1, tag == 5 ? 6 : tag);
  }
  EXPECT_FALSE(observe_two(1, 6).tags->left_out);
}

TEST_F(Messages, TheAmountTellsWhichMessageHasTheWrongTag) {
  in_barrier({0, 1});
  for (const auto& [tag, bytes] : {std::pair(4, 8u), std::pair(1037, 800u), std::pair(38, 8000u)}) {
    finished(2, "MPI_Send", 3, tag);
    thread(2).finished.back().bytes = bytes;
  }
  count(2, 3, 3, 0);
  receive(3, 2, 37);
  thread(3).current->bytes = 800;
  receive(2, 3, 40);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{2});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 1037);
}

/// The first message was received by a call that does not show what it receives.
TEST_F(Messages, OnlyAsManyMessagesAsAreMissingMayHaveAnotherTag) {
  in_barrier({0, 1});
  for (const int tag : {1, 2, 3}) finished(2, "MPI_Send", 3, tag);
  finished(3, "MPI_Start", no_rank, no_tag);
  count(2, 3, 3, 2);
  receive(3, 2, 37);
  receive(2, 3, 40);
  const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{2});
  ASSERT_TRUE(found.tags);
  EXPECT_EQ(found.tags->sent, 3);
}

/// Each rank sends to the next one and receives from the one before. Rank 2 waits in its eighth step; the others have
/// gone on as far as that lets them.
class Ring : public Messages {
 protected:
  struct Steps {
    bool exchange = true;  ///< by MPI_Sendrecv; else by MPI_Isend and MPI_Recv
    bool numbered = true;  ///< the tag is the number of the step
    int source = 1;        ///< that rank 2 names in its eighth step
    int destination = 2;   ///< that rank 1 has named in its eighth step
  };
  void run(const Steps& how) {
    constexpr int done[] = {9, 10, 7, 8};
    for (int rank = 0; rank < 4; ++rank) {
      const int from = (rank + 3) % 4, steps = done[rank];
      const auto tag = [&](int step) { return how.numbered ? step : 1; };
      const auto to = [&](int step) { return rank == 1 && step == 7 ? how.destination : (rank + 1) % 4; };
      const int source = rank == 2 ? how.source : from;
      std::map<int, std::uint64_t> sent;
      for (int step = 0; step < steps + !how.exchange; ++step) {
        finished(rank, "MPI_Isend", to(step), tag(step));
        ++sent[to(step)];
        if (step < steps) finished(rank, "MPI_Recv", from, tag(step));
      }
      if (how.exchange) {
        CallSnapshot& call = job.call(rank, "MPI_Sendrecv", to(steps));
        call.second_peer = source;
        call.tag = call.second_tag = tag(steps);
      } else {
        receive(rank, source, tag(steps));
      }
      for (const auto& [peer, messages] : sent)
        job.ranks[static_cast<std::size_t>(rank)].peers.push_back(
            {no_index, static_cast<std::uint32_t>(peer), messages, 8 * messages, 0, 0});
      job.ranks[static_cast<std::size_t>(rank)].peers.push_back({no_index, static_cast<std::uint32_t>(from), 0, 0,
                                                                 static_cast<std::uint64_t>(steps),
                                                                 static_cast<std::uint64_t>(8 * steps)});
    }
  }
  void expect_wrong_peer(int culprit, int from, int to, int named) {
    const Finding found = expect_one(observe(2), Fault::unmatched_message, Ranks{culprit});
    ASSERT_TRUE(found.wrong_peer);
    EXPECT_EQ(found.wrong_peer->from, from);
    EXPECT_EQ(found.wrong_peer->to, to);
    EXPECT_EQ(found.wrong_peer->named, named);
    EXPECT_EQ(found.wrong_peer->by_receiver, culprit == to);
  }
};

TEST_F(Ring, AnExchangeWithTheWrongSource) {
  run({.numbered = false, .source = 3});
  expect_wrong_peer(2, 1, 2, 3);
}
TEST_F(Ring, AnExchangeWithTheWrongSourceInANumberedStep) {
  run({.source = 3});
  expect_wrong_peer(2, 1, 2, 3);
}
TEST_F(Ring, AReceiveFromTheWrongSource) {
  run({.exchange = false, .numbered = false, .source = 3});
  expect_wrong_peer(2, 1, 2, 3);
}
TEST_F(Ring, AnExchangeWithTheWrongDestination) {
  run({.destination = 3});
  expect_wrong_peer(1, 1, 2, 3);
}
TEST_F(Ring, ASendToTheWrongDestination) {
  run({.exchange = false, .destination = 0});
  expect_wrong_peer(1, 1, 2, 0);
}

/// Rank 3 has received from rank 1 before, so that its message may be for a later call.
TEST_F(Ring, AMessageForARankThatAlsoReceivesFromTheSender) {
  run({.destination = 3});
  finished(1, "MPI_Isend", 3, 100);
  finished(3, "MPI_Recv", 1, 100);
  count(1, 3, 1, 1);
  EXPECT_FALSE(expect_one(observe(2), Fault::unmatched_message, Ranks{1}).wrong_peer);
}

}  // namespace
