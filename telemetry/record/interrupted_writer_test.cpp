// SPDX-License-Identifier: Apache-2.0
// A reader against a writer that is stopped, or killed, after any of its instructions. The writer is stepped by ptrace;
// the record is read whenever an instruction has changed it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "telemetry/record/peers.hpp"
#include "telemetry/record/reader.hpp"
#include "telemetry/record/recorder.hpp"
#include "telemetry/record/requests.hpp"
#include "telemetry/record/sample_record.hpp"
#include "telemetry/record/sites.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::uint64_t calls_before = main_ring_size + 10;  ///< so that the single-stepped calls overwrite older ones
constexpr std::uint64_t calls_in_steps = 12;
constexpr std::int32_t peers = 3;
constexpr unsigned sites_in_record = 5;

/// Everything that is recorded of a call follows from its number.
CallFacts facts_of(std::uint64_t number) {
  CallFacts facts;
  facts.function = static_cast<std::uint16_t>(number % 100);
  facts.operation = static_cast<std::uint16_t>(number % 7);
  facts.communicator = communicator_id(0, 0);
  facts.peer = static_cast<std::int32_t>(number % peers);
  facts.tag = static_cast<std::int32_t>(number * 3);
  facts.second_peer = static_cast<std::int32_t>(number * 5);
  facts.second_tag = static_cast<std::int32_t>(number * 7);
  facts.bytes = number << 33 | number;
  facts.ordinal = static_cast<std::uint32_t>(number * 11);
  facts.site = static_cast<std::uint32_t>(number % sites_in_record);
  return facts;
}
/// The call whose request has this handle.
constexpr std::uint64_t handle_of(std::uint64_t number) { return 0x40000000 + number; }

/// Records a nonblocking call and, two calls later, the call that waits for it, as the recording entries do.
class Writer {
 public:
  explicit Writer(RecordFile& file) : file_(file), requests_(file), peers_(file) {
    thread_.mask = main_ring_size - 1;
    thread_.ring = file.main_ring;
    thread_.record = &file.threads[0];
    thread_.wait_list = file.main_wait_list;
    thread_.wait_list_bytes = sizeof file.main_wait_list;
  }
  void make_call() {
    const std::uint64_t number = thread_.calls;
    const CallFacts facts = facts_of(number);
    if (number >= 2) {
      const auto handle = static_cast<std::uint32_t>(handle_of(number - 2));
      thread_.begin_wait_list();
      std::memcpy(thread_.wait_list, &handle, sizeof handle);
      thread_.announce_wait_list(1);
    }
    thread_.begin(facts);
    requests_.add(handle_of(number), *thread_.call, thread_.latest, RequestTracker::active);
    peers_.count_sent(PeerTable::key_in_world(facts.peer), facts.bytes);
    if (number >= 2) requests_.complete(handle_of(number - 2));
    thread_.end(std::exchange(thread_.timed, false) ? ticks() : 1);
    thread_.count_poll(5, 0);
  }

 private:
  RecordFile& file_;
  ThreadRecorder thread_;
  RequestTracker requests_;
  PeerTable peers_;
};

class InterruptedWriter : public testing::Test {
 protected:
  InterruptedWriter() {
    char name[] = "/tmp/bestride-interrupted-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/1.record";
  }
  ~InterruptedWriter() override {
    if (writer_ > 0) end();
    if (file_) munmap(static_cast<void*>(file_), record_file_bytes);
    std::filesystem::remove_all(folder_);
  }

  /// Starts a process that makes the first calls and stops before those in steps. False: ptrace is not allowed.
  bool start() {
    write_file(path_, std::string(record_file_bytes, '\0'));
    const int opened = open(path_.c_str(), O_RDWR);
    if (file_) munmap(static_cast<void*>(file_), record_file_bytes);
    file_ = static_cast<RecordFile*>(mmap(nullptr, record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0));
    close(opened);
    writer_ = fork();
    if (writer_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
      Writer writer(*file_);
      for (std::uint64_t i = 0; i < calls_before; ++i) writer.make_call();
      raise(SIGSTOP);
      for (std::uint64_t i = 0; i < calls_in_steps; ++i) writer.make_call();
      _exit(0);
    }
    int status = 0;
    waitpid(writer_, &status, 0);
    if (WIFSTOPPED(status)) {
      begin_record(*file_, writer_, process_status(writer_).start_time, 0, peers);
      file_->header.sites.set(sites_in_record);
      return true;
    }
    writer_ = 0;
    return false;
  }
  /// False: the writer has ended.
  bool step() {
    int status = 0;
    if (ptrace(PTRACE_SINGLESTEP, writer_, nullptr, nullptr) != 0 || waitpid(writer_, &status, 0) != writer_)
      return false;
    if (WIFSTOPPED(status)) return true;
    writer_ = 0;
    return false;
  }
  void end() {
    kill(writer_, SIGKILL);
    waitpid(writer_, nullptr, 0);
    writer_ = 0;
  }

  static void expect_call(const CallSnapshot& call) {
    const CallFacts facts = facts_of(call.number);
    EXPECT_EQ(call.function, facts.function);
    EXPECT_EQ(call.operation, facts.operation);
    EXPECT_EQ(call.communicator, 0u);
    EXPECT_EQ(call.peer, facts.peer);
    EXPECT_EQ(call.tag, facts.tag);
    EXPECT_EQ(call.second_peer, facts.second_peer);
    EXPECT_EQ(call.second_tag, facts.second_tag);
    EXPECT_EQ(call.bytes, facts.bytes);
    EXPECT_EQ(call.ordinal, facts.ordinal);
    EXPECT_EQ(call.site, facts.site);
  }
  /// Whatever the writer was doing, what the reader returns was written for one call or request.
  RankSnapshot expect_whole() {
    const auto read = read_record(path_, {.finished_calls = main_ring_size});
    EXPECT_TRUE(read) << read.error().text;
    if (!read) return {};
    EXPECT_EQ(read->threads.size(), 1u);
    if (read->threads.size() != 1) return {};
    const ThreadSnapshot& thread = read->threads[0];
    EXPECT_FALSE(thread.moving);
    std::uint64_t next = 0;
    for (const CallSnapshot& call : thread.finished) {
      expect_call(call);
      EXPECT_GE(call.number, next);
      EXPECT_TRUE(call.left == 1 || call.left >= call.entered);
      next = call.number + 1;
    }
    // Of the calls in the ring, only the one that is being overwritten may be missing.
    EXPECT_GE(thread.finished.size(), main_ring_size - 2);
    EXPECT_GE(next + 1, thread.calls);
    if (thread.current) {
      expect_call(*thread.current);
      EXPECT_EQ(thread.current->number + 1, thread.calls);
    }
    EXPECT_EQ(thread.in_mpi, thread.current.has_value());
    // Two requests are pending between calls, a third one during a call.
    EXPECT_GE(read->requests.size(), 2u);
    EXPECT_LE(read->requests.size(), 3u);
    for (const RequestSnapshot& request : read->requests) {
      const CallFacts facts = facts_of(request.key - handle_of(0));
      EXPECT_EQ(request.function, facts.function);
      EXPECT_EQ(request.communicator, 0u);
      EXPECT_EQ(request.peer, facts.peer);
      EXPECT_EQ(request.tag, facts.tag);
      EXPECT_EQ(request.bytes, facts.bytes);
      EXPECT_EQ(request.ordinal, facts.ordinal);
      EXPECT_EQ(request.handles, 1);
      EXPECT_EQ(request.waiter, thread.current && request.key == handle_of(thread.current->number - 2) ? 1 : 0);
    }
    std::uint64_t messages = 0;
    for (const PeerSnapshot& peer : read->peers) messages += peer.sent_messages;
    EXPECT_EQ(read->peers.size(), static_cast<std::size_t>(peers));
    EXPECT_LE(messages, thread.calls);
    EXPECT_GE(messages + 1, thread.calls);
    EXPECT_EQ(read->torn, 0u);
    return *read;
  }

  std::string folder_, path_;
  RecordFile* file_ = nullptr;
  pid_t writer_ = 0;
};

TEST_F(InterruptedWriter, StoppedAfterAnyInstruction) {
  if (!start()) GTEST_SKIP() << "ptrace is not allowed here";
  std::vector<unsigned char> before(sizeof(RecordFile));
  std::uint64_t calls = 0, states = 0;
  do {
    if (std::memcmp(before.data(), static_cast<const void*>(file_), sizeof(RecordFile)) == 0) continue;
    std::memcpy(before.data(), static_cast<const void*>(file_), sizeof(RecordFile));
    const RankSnapshot rank = expect_whole();
    if (HasFailure()) return;
    EXPECT_TRUE(rank.alive);
    EXPECT_GE(rank.threads[0].calls, calls);
    calls = rank.threads[0].calls;
    ++states;
  } while (step());
  EXPECT_EQ(calls, calls_before + calls_in_steps);
  EXPECT_GT(states, calls_in_steps * 24);  // stores of a call
}

TEST_F(InterruptedWriter, KilledAfterSomeInstruction) {
  for (int steps = 0; steps < 2000; steps += 61) {
    if (!start()) GTEST_SKIP() << "ptrace is not allowed here";
    for (int i = 0; i < steps && step(); ++i) {
    }
    if (writer_ == 0) return;  // it has ended
    end();
    EXPECT_TRUE(expect_whole().gone());
    if (HasFailure()) {
      ADD_FAILURE() << "after " << steps << " instructions";
      return;
    }
  }
}

}  // namespace
}  // namespace bestride::inline telemetry
