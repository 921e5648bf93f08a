// SPDX-License-Identifier: Apache-2.0
// The writer of record files: what a reader finds in the structures that it fills.
#include "telemetry/record/recorder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "telemetry/record/end_notes.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/peers.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/record/requests.hpp"
#include "telemetry/record/sites.hpp"
#include "telemetry/record/watcher.hpp"

namespace bestride::inline telemetry {
namespace {

class RecordWriter : public testing::Test {
 protected:
  /// The record of a call with these facts, until the thread's next one.
  static const CallRecord& recorded(const CallFacts& facts) {
    thread_local CallRecord call;
    write_facts(call, facts);
    return call;
  }
  static const CallRecord& request(std::int32_t peer) {
    CallFacts facts;
    facts.function = 3;
    facts.peer = peer;
    return recorded(facts);
  }
  std::size_t requests_in_use() const {
    std::size_t used = 0;
    for (const Shared<std::uint64_t>& key : file_->request_keys) used += key.get() != 0;
    return used;
  }
  std::unique_ptr<RecordFile> file_ = std::make_unique<RecordFile>();
};

class ThreadInRing : public RecordWriter {
 protected:
  void SetUp() override {
    thread_.mask = main_ring_size - 1;
    thread_.ring = file_->main_ring;
    thread_.record = &file_->threads[0];
  }
  ThreadRecorder thread_;
};

TEST_F(ThreadInRing, ACallInProgressIsInTheRing) {
  CallFacts facts;
  facts.function = 7;
  facts.operation = 11;
  facts.communicator = 3;
  facts.peer = any_rank;
  facts.tag = 42;
  facts.second_peer = 5;
  facts.second_tag = any_tag;
  facts.bytes = std::uint64_t{1} << 40;
  facts.ordinal = 9;
  facts.site = 2;
  thread_.begin(facts);
  EXPECT_TRUE(thread_.timed);
  const CallRecord& call = file_->call(0, 0);
  EXPECT_EQ(file_->threads[0].calls.get(), 1u);
  EXPECT_EQ(call.sequence.get(), 2u);
  EXPECT_EQ(call.left.get(), 0u);
  EXPECT_EQ(call.function.get(), 7);
  EXPECT_EQ(call.operation.get(), 11);
  EXPECT_EQ(call.communicator.get(), 3u);
  EXPECT_EQ(call.peer.get(), any_rank);
  EXPECT_EQ(call.tag.get(), 42);
  EXPECT_EQ(call.second_peer.get(), 5);
  EXPECT_EQ(call.second_tag.get(), any_tag);
  EXPECT_EQ(call.bytes.get(), std::uint64_t{1} << 40);
  EXPECT_EQ(call.ordinal.get(), 9u);
  EXPECT_EQ(call.site.get(), 2u);
  const std::uint64_t now = ticks();
  EXPECT_EQ(thread_.end(now), now - call.entered.get());
  EXPECT_EQ(call.left.get(), now);
  EXPECT_EQ(thread_.gate, 0u);
}

TEST_F(ThreadInRing, TheRingKeepsTheLastCalls) {
  for (std::uint16_t i = 0; i < main_ring_size + 5; ++i) {
    CallFacts facts;
    facts.bytes = i;
    thread_.begin(facts);
    thread_.end(1);
  }
  EXPECT_EQ(file_->call(0, main_ring_size + 4).bytes.get(), main_ring_size + 4u);
  EXPECT_EQ(file_->call(0, 5).bytes.get(), 5u);
  EXPECT_EQ(file_->call(0, 4).sequence.get(), 2 * (main_ring_size + 4u) + 2);
}

TEST_F(ThreadInRing, ASampledCallHasTheLastReading) {
  thread_.begin({});
  thread_.next_timed = 3;
  EXPECT_TRUE(std::exchange(thread_.timed, false));
  thread_.end(ticks());
  const std::uint64_t last = thread_.latest;
  thread_.begin({});
  EXPECT_FALSE(thread_.timed);
  EXPECT_EQ(file_->call(0, 1).entered.get(), last);
}

// Programs repeat sequences of calls. Every place in such a sequence must be timed.
TEST_F(ThreadInRing, EveryPlaceInASequenceOfCallsIsTimed) {
  for (std::uint64_t sampling : {1, 3, 7, 15, 31, 63})
    for (std::uint64_t length : {2, 3, 4, 7, 8, 9, 16, 32}) {
      std::vector<int> timed(length);
      const std::uint64_t repetitions = 64 * (sampling + 1);
      for (std::uint64_t i = 0; i < repetitions * length; ++i) {
        thread_.sampling = sampling;
        thread_.begin({});
        timed[i % length] += std::exchange(thread_.timed, false);
        thread_.end(1);
      }
      for (const int each : timed) {
        EXPECT_GT(each, 32) << sampling << ' ' << length;
        EXPECT_LT(each, 128) << sampling << ' ' << length;
      }
    }
}

TEST_F(RecordWriter, ARequestIsFoundUntilItIsComplete) {
  RequestTracker tracker(*file_);
  tracker.add(100, request(1), 1, RequestTracker::active);
  ASSERT_TRUE(tracker.find(100));
  EXPECT_EQ(tracker.find(100)->peer.get(), 1);
  tracker.complete(100);
  EXPECT_FALSE(tracker.find(100));
  EXPECT_EQ(requests_in_use(), 0u);
}

TEST_F(RecordWriter, APersistentRequestBecomesInactive) {
  RequestTracker tracker(*file_);
  tracker.add(100, request(1), 1, RequestTracker::inactive);
  EXPECT_EQ(tracker.find(100)->active.get(), RequestTracker::inactive);
  tracker.activate(100, 77);
  EXPECT_EQ(tracker.find(100)->active.get(), RequestTracker::persistent);
  tracker.complete(100);
  ASSERT_TRUE(tracker.find(100));
  EXPECT_EQ(tracker.find(100)->active.get(), RequestTracker::inactive);
  tracker.remove(100);
  EXPECT_FALSE(tracker.find(100));
}

TEST_F(RecordWriter, AHandleOfSeveralRequestsIsFoundUntilAllAreComplete) {
  RequestTracker tracker(*file_);
  for (int i = 0; i < 3; ++i) tracker.add(100, request(1), 1, RequestTracker::active);
  tracker.complete(100);
  tracker.remove(100);
  EXPECT_TRUE(tracker.find(100));
  tracker.complete(100);
  EXPECT_FALSE(tracker.find(100));
}

TEST_F(RecordWriter, ARecordThatHasAnotherHandleByNowIsNotCompleted) {
  RequestTracker tracker(*file_);
  tracker.add(100, request(1), 1, RequestTracker::active);
  const unsigned place = tracker.place_of(100);
  tracker.complete(100);
  tracker.complete(100);  // the array of the call had the handle twice
  EXPECT_EQ(requests_in_use(), 0u);
  file_->request_keys[place].set(200);
  tracker.complete(100);
  EXPECT_EQ(requests_in_use(), 1u);
}

class RequestPlaces : public RecordWriter, public testing::WithParamInterface<bool> {};

TEST_P(RequestPlaces, RequestsThatCollideAreAllFound) {
  RequestTracker tracker(*file_);
  tracker.set_concurrent(GetParam());
  // At most 64 at a time, as in a program: some handles have the same place.
  constexpr std::uint64_t rounds = 2000, at_a_time = 64;
  std::set<std::uint64_t> posted;
  std::mt19937_64 random(7);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t handle = 1 + random() % 4096;
    if (const auto known = posted.find(handle); known != posted.end()) {
      tracker.complete(handle);
      posted.erase(known);
    } else {
      tracker.add(handle, request(static_cast<std::int32_t>(handle)), round, RequestTracker::active);
      posted.insert(handle);
    }
    if (posted.size() > at_a_time) {
      tracker.complete(*posted.begin());
      posted.erase(posted.begin());
    }
    ASSERT_EQ(requests_in_use(), posted.size());
    for (const std::uint64_t each : posted) {
      const RequestRecord* const found = tracker.find(each);
      ASSERT_TRUE(found) << each;
      ASSERT_EQ(found->peer.get(), static_cast<std::int32_t>(each));
      ASSERT_EQ(found->handles.get(), 1);
    }
  }
  while (!posted.empty()) {
    tracker.complete(*posted.begin());
    posted.erase(posted.begin());
  }
  EXPECT_EQ(requests_in_use(), 0u);
  EXPECT_EQ(file_->header.requests_dropped.get(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Threads, RequestPlaces, testing::Bool());

TEST_F(ThreadInRing, ManyShortCallsAreSampledSoonAndFewAreTimedAgain) {
  // The cost of a record is not measured here, so it is given by the time that the calls seem to take.
  Recorder& recorder = Recorder::get();
  recorder.set_ticks_per_record(100);
  const auto check = [&](std::uint64_t ticks_of_a_call) {
    thread_.calls += Recorder::check_period;
    thread_.checked = ticks() - Recorder::check_period * ticks_of_a_call;
    recorder.check_rate(thread_);
    return thread_.sampling;
  };
  EXPECT_EQ(check(1'000'000), 0u);
  EXPECT_EQ(check(10'000), 3u);  // 1 % of the time: 0.4 % at most
  EXPECT_EQ(check(200), 63u);
  EXPECT_EQ(check(1'000'000), 63u);
  for (int i = 0; i < 16 * 7; ++i) check(1'000'000);
  EXPECT_EQ(thread_.sampling, 0u);
}

TEST_F(RecordWriter, RequestsThatDoNotFitAreCounted) {
  RequestTracker tracker(*file_);
  constexpr std::uint64_t many = 3 * max_requests;
  for (std::uint64_t handle = 1; handle <= many; ++handle) tracker.add(handle, request(0), 1, RequestTracker::active);
  EXPECT_EQ(requests_in_use() + file_->header.requests_dropped.get(), many);
  EXPECT_GT(requests_in_use(), max_requests / 2);
  for (std::uint64_t handle = 1; handle <= many; ++handle) tracker.complete(handle);
  EXPECT_EQ(requests_in_use(), 0u);
}

TEST_F(RecordWriter, ThreadsPostAndCompleteRequests) {
  RequestTracker tracker(*file_);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 2000; ++round)
        for (std::uint64_t i = 0; i < 8; ++i) {
          const std::uint64_t handle = 1 + thread * 100 + i;
          tracker.add(handle, request(static_cast<std::int32_t>(thread)), 1, RequestTracker::active);
          if (const RequestRecord* const found = tracker.find(handle)) {
            EXPECT_EQ(found->peer.get(), static_cast<std::int32_t>(thread));
          }
          tracker.complete(handle);
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(requests_in_use(), 0u);
}

TEST_F(RecordWriter, PeersAreCountedByKey) {
  PeerTable peers(*file_);
  peers.count_sent(PeerTable::key_in_world(0), 10);
  peers.count_sent(PeerTable::key_in_world(0), 20);
  peers.count_received(PeerTable::key_in(4, 0), 5);
  EXPECT_EQ(peers.find(PeerTable::key_in_world(0))->sent_messages.get(), 2u);
  EXPECT_EQ(peers.find(PeerTable::key_in_world(0))->sent_bytes.get(), 30u);
  EXPECT_EQ(peers.find(PeerTable::key_in(4, 0))->received_bytes.get(), 5u);
  EXPECT_EQ(file_->header.peers_dropped.get(), 0u);
  for (std::int32_t rank = 1; rank < 10'000; ++rank) peers.count_sent(PeerTable::key_in_world(rank), 1);
  EXPECT_GT(file_->header.peers_dropped.get(), 0u);
}

TEST_F(RecordWriter, ALargeMessageIsRememberedWhenItsRequestIsComplete) {
  MessageLog log(*file_);
  RequestTracker tracker(*file_, &log);
  CallFacts facts;
  facts.peer = 1;
  facts.bytes = 5000;
  facts.tag = 70'000;
  tracker.add(100, recorded(facts), 1600, RequestTracker::active, 8, 4 + 1);
  tracker.add(101, recorded(facts), 1600, RequestTracker::active, 9);
  MessageEnd end{3200, 4800, 2};
  tracker.complete(100, end);
  tracker.complete(101, end);
  ASSERT_EQ(file_->header.messages.get(), 1u);
  const MessageRecord& record = file_->messages[0];
  EXPECT_EQ(record.posted.get(), 100u);
  EXPECT_EQ(record.waited.get(), 100u);
  EXPECT_EQ(record.completed.get(), 200u);
  EXPECT_EQ(record.bytes.get(), 5000u);
  EXPECT_EQ(record.number.get(), 8u);
  EXPECT_EQ(record.peer.get(), 4u);
  EXPECT_EQ(record.together.get(), 2u);
  EXPECT_EQ(record.tag.get(), folded_tag(70'000));
  EXPECT_EQ(record.sequence.get(), message_sequence(0));
}

TEST_F(RecordWriter, SendsThatShareAHandleAreRememberedAtOnce) {
  MessageLog log(*file_);
  RequestTracker tracker(*file_, &log);
  for (std::uint32_t number = 1; number <= 3; ++number)
    tracker.add(100, request(1), 160 * number, RequestTracker::active, number, 1);
  EXPECT_EQ(file_->header.messages.get(), 3u);
  for (int i = 0; i < 3; ++i) tracker.complete(100);
  EXPECT_EQ(file_->header.messages.get(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(file_->messages[i].number.get(), i + 1);
    EXPECT_EQ(file_->messages[i].posted.get(), 10 * (i + 1));
    EXPECT_EQ(file_->messages[i].completed.get(), 0u);
  }
}

TEST_F(RecordWriter, BothSidesChooseTheSameMessagesAtDifferentRates) {
  // The sender has ten times as many messages as the receiver, so its share is smaller.
  const auto other = std::make_unique<RecordFile>();
  for (RecordFile* file : {file_.get(), other.get()}) file->header.ticks_per_second.set(1e6);
  MessageLog often(*file_), rarely(*other);
  const auto run = [](MessageLog& log, double seconds, std::uint64_t step) {
    std::uint32_t chosen = 0;
    std::uint64_t now = 1'000'000;
    for (std::uint32_t number = 1; static_cast<double>(now) < 1e6 * (1 + seconds); ++number, now += step)
      if (log.chooses(number)) log.add({0, 1, number, 4096, now}, {now, now + 10, 1}), ++chosen;
    return chosen;
  };
  EXPECT_LT(run(often, 60, 100), 60 * 10'000 / 20);
  EXPECT_GT(run(rarely, 60, 1000), 60 * max_messages / 20);
  std::uint32_t both = 0, few = 0;
  for (std::uint32_t number = 1; number <= 100'000; ++number) {
    few += often.chooses(number);
    both += often.chooses(number) && rarely.chooses(number);
  }
  EXPECT_EQ(both, few);
  EXPECT_GT(few, 100u);
  EXPECT_LT(few, 5000u);
}

TEST_F(RecordWriter, APlaceHasItsModuleAndStack) {
  SiteTable sites(*file_, 1);
  sites.set_ticks_per_second(1e9);
  const void* const here = __builtin_return_address(0);
  const std::uint32_t site = sites.find({here, nullptr}, 12);
  EXPECT_EQ(site, 0u);
  EXPECT_EQ(sites.find({here, nullptr}, 12), site);
  SiteRecord& record = sites.record_of(site);
  EXPECT_EQ(&record, &file_->sites[site]);
  for (const std::uint64_t ticks : {500, 3'000'000, 0}) {
    sites.count(record, 100);
    sites.add_time(record, ticks);
  }
  EXPECT_EQ(record.function.get(), 12);
  EXPECT_EQ(record.calls.get(), 3u);
  EXPECT_EQ(record.bytes.get(), 300u);
  EXPECT_EQ(record.ticks.get(), 3'000'500u);
  EXPECT_EQ(record.most_ticks.get(), 3'000'000u);
  EXPECT_EQ(record.histogram[0].get(), 1u);
  EXPECT_EQ(record.histogram[6].get() + record.histogram[7].get(), 1u);
  const ModuleRecord& module = file_->modules[record.module.get()];
  EXPECT_EQ(module.load_address + record.address.get() + 1, reinterpret_cast<std::uint64_t>(here));
  EXPECT_GT(file_->header.frames.get(), 2u);
}

TEST_F(RecordWriter, PlacesThatDoNotFitAreCounted) {
  SiteTable sites(*file_, 1);
  const char* const base = reinterpret_cast<const char*>(__builtin_return_address(0));
  std::uint32_t last = 0;
  for (unsigned i = 0; i < 3 * max_sites; ++i) last = sites.find({base + i, nullptr}, 1);
  EXPECT_EQ(last, no_index);
  EXPECT_EQ(file_->header.sites.get(), max_sites);
  EXPECT_GE(file_->header.sites_dropped.get(), 2 * max_sites);
  EXPECT_EQ(sites.find({base, nullptr}, 1), 0u);
  EXPECT_EQ(&sites.record_of(last), &file_->other_sites);
}

/// The ranks of a job, and other jobs, begin at the same time: each looks for folders without a living process.
TEST(JobFolder, ARecordIsCreatedWhileOthersRemoveStaleOnes) {
  constexpr double never = 1e9;  // seconds: no record of others is removed
  std::atomic<bool> done{false};
  std::thread others([&] {
    while (!done) remove_stale_records(never);
  });
  int failed = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string path;
    const Result<RecordFile*> record = create_record("test-" + std::to_string(getpid()), &path);
    failed += !record;
    if (!record) continue;
    munmap(*record, record_file_bytes);
    remove_record(path);
  }
  done = true;
  others.join();
  EXPECT_EQ(failed, 0);
}

/// The descriptors of a file in this process.
std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) == path) all.push_back(std::stoi(entry.path().filename()));
  }
  return all;
}

void close_all(const std::string& path) {
  for (const int descriptor : descriptors_of(path)) close(descriptor);
}

/// So that its close precedes those of the descriptors that a launcher looks at.
TEST(JobFolder, TheRecordStaysOpenUnderAHighNumber) {
  std::string path;
  const Result<RecordFile*> record = create_record("test-" + std::to_string(getpid()), &path);
  ASSERT_TRUE(record);
  const std::vector<int> descriptors = descriptors_of(path);
  ASSERT_EQ(descriptors.size(), 1u);
  const int open_as = descriptors[0];
  EXPECT_GE(open_as, 200);
  EXPECT_NE(fcntl(open_as, F_GETFD) & FD_CLOEXEC, 0);
  munmap(*record, record_file_bytes);
  close(open_as);
  remove_record(path);
}

TEST(JobFolder, ProcessesOfDifferentPidNamespacesHaveRecordsOfDifferentNames) {
  EXPECT_EQ(record_name(7, 0xEFFFFFFC), "7.record");
  EXPECT_EQ(record_name(7, 0), "7.record");
  EXPECT_EQ(record_name(1, 4026532177), "1-4026532177.record");
}

TEST(JobFolder, ARecordIsReplacedByThatOfALaterProcessWithItsPid) {
  const std::string job = "test-" + std::to_string(getpid());
  std::string first_path, second_path;
  const Result<RecordFile*> first = create_record(job, &first_path);
  ASSERT_TRUE(first);
  (*first)->header.pid = 1;
  std::ofstream(crash_path(first_path)) << "x";
  const Result<RecordFile*> second = create_record(job, &second_path);
  ASSERT_TRUE(second);
  EXPECT_EQ(second_path, first_path);
  EXPECT_EQ((*second)->header.pid, 0);
  EXPECT_EQ((*second)->header.locked, 1u);
  EXPECT_FALSE(std::filesystem::exists(crash_path(first_path)));
  for (RecordFile* record : {*first, *second}) munmap(record, record_file_bytes);
  close_all(second_path);
  close_all(second_path + " (deleted)");
  remove_record(second_path);
}

TEST(JobFolder, AJobHasTheLaunchersNameIfNoOtherIsKnown) {
  EXPECT_EQ(job_name(""), "pid-" + std::to_string(getpid()));
  EXPECT_EQ(job_name("kvs_1_node/../x"), "kvs_1_node_.._x");
  EXPECT_EQ(job_name("../x"), "_.._x");
}

TEST(Watcher, IsHereOnlyByItsWholeName) {
  const std::string name = own_watcher_name();
  EXPECT_TRUE(watcher_is_here(name));
  for (const std::string& other : {std::string(), "x" + name, name + "0", own_host() + ":", own_host() + ":1:1"})
    EXPECT_FALSE(watcher_is_here(other)) << other;
}

TEST(EndNote, TheLastLineOfALongErrorIsKept) {
  const std::string first = "Invalid rank, error stack:\n", last = "internal_Send(71): Invalid rank has value 7";
  const auto written = [](EndKind kind, const std::string& text) {
    EndNote note{};
    write_end_text(note, kind, text);
    return std::string(note.text);
  };
  const std::string middle = "internal_Send(104): MPI_Send(" + std::string(300, 'x') + ")\n";
  EXPECT_EQ(written(EndKind::mpi_error, first + last + "\n"), first + last);
  EXPECT_EQ(written(EndKind::mpi_error, first + middle + middle + last), first + middle + last);
  EXPECT_EQ(written(EndKind::exception, first + middle + middle + last), (first + middle + middle).substr(0, 487));
  const std::string one_line(600, 'y');
  EXPECT_EQ(written(EndKind::mpi_error, one_line), one_line.substr(0, 487));
  EXPECT_EQ(written(EndKind::mpi_error, one_line + "\n" + one_line),
            one_line.substr(0, 243) + "\n" + one_line.substr(0, 243));
}

TEST(TickClock, RunsAtItsRate) {
  const ClockAnchor first = read_clocks();
  ClockAnchor last;
  do last = read_clocks();
  while (last.monotonic - first.monotonic < 20'000'000);
  const double seconds = static_cast<double>(last.monotonic - first.monotonic) * 1e-9;
  EXPECT_NEAR(static_cast<double>(last.ticks - first.ticks) / ticks_per_second(), seconds, 0.02 * seconds);
}

}  // namespace
}  // namespace bestride::inline telemetry
