// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/poll_notes.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "telemetry/record/reader.hpp"
#include "telemetry/record/sample_record.hpp"

namespace bestride::inline telemetry {
namespace {

/// A thread that has made one call and has four requests.
class PollNotesTest : public testing::Test {
 protected:
  PollNotesTest() {
    begin_record(*sample_, getpid(), own_start_time(), 3, 8);
    for (unsigned i = 0; i < 4; ++i) {
      sample_->request_keys[i].set(0x1000 + i);
      sample_->requests[i].active.set(1);
    }
    begin_call(*sample_, 0, "MPI_Recv");
    end_call(*sample_, 0);
    thread_.record = &sample_->threads[0];
    thread_.calls = 1;
  }
  RankSnapshot read() {
    const std::string path = testing::TempDir() + "poll_notes." + std::to_string(getpid()) + ".record";
    write_file(path, sample_.bytes());
    auto rank = read_record(path);
    std::filesystem::remove(path);
    EXPECT_TRUE(rank) << rank.error().text;
    return rank ? std::move(*rank) : RankSnapshot{};
  }
  /// Polls so many times; each of `requests` (their indices) in turn, which have these keys.
  void test_requests(int times, std::vector<unsigned> requests) {
    for (int i = 0; i < times; ++i)
      for (const unsigned request : requests)
        if (thread_.count_poll(function_number("MPI_Test"), request + 1))
          PollNotes(thread_, request + 1).request(&sample_->requests[request]);
  }
  void probe(int times, std::int32_t tag) {
    const auto key = static_cast<std::uint64_t>(1000 + tag);
    for (int i = 0; i < times; ++i)
      if (thread_.count_poll(function_number("MPI_Iprobe"), key))
        PollNotes(thread_, key).probe(function_number("MPI_Iprobe"), communicator_id(0, 0), any_rank, tag);
  }
  static std::vector<int> pollers(const RankSnapshot& rank) {
    std::vector<int> all;
    for (const RequestSnapshot& request : rank.requests) all.push_back(request.waiter == 0 ? request.poller : -1);
    return all;
  }

  SampleRecord sample_;
  ThreadRecorder thread_;
};

TEST_F(PollNotesTest, OneRequest) {
  test_requests(ThreadRecorder::polls_before_notes, {1});
  EXPECT_FALSE(read().threads[0].polled_known);
  test_requests(40, {1});
  const RankSnapshot rank = read();
  EXPECT_TRUE(rank.threads[0].polled_known);
  EXPECT_TRUE(rank.threads[0].polls_one);
  EXPECT_TRUE(rank.threads[0].probes.empty());
  EXPECT_EQ(pollers(rank), (std::vector<int>{0, 1, 0, 0}));
}

TEST_F(PollNotesTest, SeveralInTurn) {
  test_requests(20, {0, 3});
  probe(1, 7);
  test_requests(20, {0, 3});
  probe(2, 7);
  const RankSnapshot rank = read();
  EXPECT_TRUE(rank.threads[0].polled_known);
  EXPECT_FALSE(rank.threads[0].polls_one);
  EXPECT_EQ(pollers(rank), (std::vector<int>{1, 0, 0, 1}));
  ASSERT_EQ(rank.threads[0].probes.size(), 1u);
  EXPECT_EQ(rank.threads[0].probes[0].communicator, 0u);
  EXPECT_EQ(rank.threads[0].probes[0].peer, any_rank);
  EXPECT_EQ(rank.threads[0].probes[0].tag, 7);
}

TEST_F(PollNotesTest, MoreProbesThanFit) {
  probe(20, 0);
  for (int i = 0; i < 10; ++i)
    for (unsigned tag = 0; tag < max_probes; ++tag) probe(1, static_cast<std::int32_t>(tag));
  EXPECT_TRUE(read().threads[0].polled_known);
  EXPECT_EQ(read().threads[0].probes.size(), max_probes);
  probe(1, 99);
  EXPECT_FALSE(read().threads[0].polled_known);
}

TEST_F(PollNotesTest, ARequestThatIsNotRecorded) {
  test_requests(60, {1});
  if (thread_.count_poll(function_number("MPI_Test"), 77)) PollNotes(thread_, 77).request(nullptr);
  EXPECT_FALSE(read().threads[0].polled_known);
}

TEST_F(PollNotesTest, NotesHoldUntilTheNextCall) {
  test_requests(60, {1});
  probe(60, 7);
  begin_call(*sample_, 0, "MPI_Recv");
  end_call(*sample_, 0);
  thread_.calls = 2;
  RankSnapshot rank = read();
  EXPECT_FALSE(rank.threads[0].polled_known);
  EXPECT_TRUE(rank.threads[0].probes.empty());
  EXPECT_EQ(pollers(rank), (std::vector<int>{0, 0, 0, 0}));
  test_requests(60, {2});
  rank = read();
  EXPECT_TRUE(rank.threads[0].polled_known);
  EXPECT_TRUE(rank.threads[0].probes.empty());
  EXPECT_EQ(pollers(rank), (std::vector<int>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace bestride::inline telemetry
