// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "telemetry/record/message_log.hpp"
#include "telemetry/record/peers.hpp"
#include "telemetry/record/sample_record.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline telemetry {
namespace {

class Reader : public testing::Test {
 protected:
  Reader() {
    char name[] = "/tmp/bestride-reader-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/1.record";
    begin_record(*sample_, getpid(), own_start_time(), 3, 8);
  }
  ~Reader() override { std::filesystem::remove_all(folder_); }

  RankSnapshot good(std::size_t finished_calls = 16) {
    write_file(path_, sample_.bytes());
    auto rank = read_record(path_, {finished_calls});
    EXPECT_TRUE(rank) << rank.error().text;
    return rank ? std::move(*rank) : RankSnapshot{};
  }
  std::string refused() {
    const auto rank = read_record(path_);
    EXPECT_FALSE(rank);
    EXPECT_EQ(rank.error().text.find('\n'), std::string::npos);
    return rank ? "" : rank.error().text;
  }

  std::string folder_, path_;
  SampleRecord sample_;
};

/// A process may finalize MPI and end between the copy of its record and the look at whether it lives.
TEST_F(Reader, OfAProcessThatHasEndedTheLastStateIsRead) {
  int read_early = 0;
  for (unsigned i = 0; i < 400; ++i) {
    int begin[2];
    ASSERT_EQ(pipe(begin), 0);
    const pid_t child = fork();
    if (child == 0) {
      char go = 0;
      if (::read(begin[0], &go, 1) != 1) _exit(1);
      const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      const std::uint64_t until = ticks() + i * 2000;
      while (ticks() < until)
        ;
      const auto state = static_cast<std::uint32_t>(ProcessState::finalized);
      const auto at = static_cast<off_t>(offsetof(RecordFile, header) + offsetof(RecordHeader, state));
      _exit(pwrite(file, &state, sizeof state, at) == sizeof state ? 0 : 1);
    }
    begin_record(*sample_, child, process_status(child).start_time, 0, 1);
    write_file(path_, sample_.bytes());
    ASSERT_EQ(write(begin[1], "", 1), 1);
    for (bool alive = true; alive;) {
      const auto rank = read_record(path_);
      ASSERT_TRUE(rank) << rank.error().text;
      alive = rank->alive;
      read_early += alive;
      EXPECT_TRUE(alive || rank->state == ProcessState::finalized) << i;
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    close(begin[0]), close(begin[1]);
  }
  EXPECT_GT(read_early, 0);
}

TEST_F(Reader, HeaderAndLiveness) {
  const RankSnapshot rank = good();
  EXPECT_EQ(rank.world_rank, 3);
  EXPECT_EQ(rank.world_size, 8);
  EXPECT_EQ(rank.pid, getpid());
  EXPECT_EQ(rank.host, "node1");
  EXPECT_EQ(rank.state, ProcessState::initialized);
  EXPECT_TRUE(rank.alive && rank.visible && rank.functions_known);
  EXPECT_FALSE(rank.gone());
  ASSERT_EQ(rank.threads.size(), 1u);
  EXPECT_EQ(rank.threads[0].state, 'R');
  EXPECT_FALSE(rank.threads[0].in_mpi);
}

TEST_F(Reader, ACallOnACommunicatorWhoseEntryWasUsedAgain) {
  CommunicatorRecord& entry = sample_->communicators[5];
  entry.size.set(1);
  entry.kind.set(communicator_id(static_cast<std::uint32_t>(CommunicatorKind::intra), 2));
  CallRecord& call = begin_call(*sample_.file, 0, "MPI_Barrier", 0);
  call.communicator.set(communicator_id(5, 2));
  EXPECT_EQ(good().threads.at(0).current->communicator, 5u);
  call.communicator.set(communicator_id(5, 1));
  EXPECT_EQ(good().threads.at(0).current->communicator, no_index);
}

TEST_F(Reader, AProcessThatWasKilledIsGone) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  sample_->header.pid = child;
  sample_->header.process_start = process_status(child).start_time;
  EXPECT_TRUE(good().alive);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(good().gone());
  sample_->header.state.set(static_cast<std::uint32_t>(ProcessState::finalized));
  EXPECT_FALSE(good().gone());
}

TEST_F(Reader, AnExitCodeIsAWaitStatus) {
  EXPECT_EQ(good().wait_status, -1);
  sample_->header.exited.set(1);
  EXPECT_EQ(good().wait_status, 0);
  sample_->header.exited.set(1 + 28);
  EXPECT_EQ(good().wait_status, 28 << 8);
  sample_->header.exited.set(0xffffffff);
  EXPECT_EQ(good().wait_status, -1) << "no exit code";
}

TEST_F(Reader, APidUsedAgainIsAnotherProcess) {
  sample_->header.process_start = own_start_time() + 1;
  EXPECT_FALSE(good().alive);
}

TEST_F(Reader, CurrentAndFinishedCalls) {
  for (int i = 0; i < 20; ++i) {
    begin_call(*sample_, 0, "MPI_Send").tag.set(i);
    end_call(*sample_, 0);
  }
  EXPECT_FALSE(good().threads[0].current);
  CallRecord& call = begin_collective(*sample_, "MPI_Allreduce");
  call.bytes.set(8);
  const RankSnapshot rank = good();
  const ThreadSnapshot& thread = rank.threads.at(0);
  ASSERT_TRUE(thread.in_mpi && thread.current);
  EXPECT_EQ(thread.current->number, 20u);
  EXPECT_EQ(thread.current->function, function_number("MPI_Allreduce"));
  EXPECT_EQ(thread.current->ordinal, 1u);
  EXPECT_EQ(thread.current->bytes, 8u);
  ASSERT_EQ(thread.finished.size(), 16u);
  EXPECT_EQ(thread.finished.front().tag, 4);
  EXPECT_EQ(thread.finished.back().tag, 19);
  EXPECT_EQ(read_record(path_, {.finished_calls = 1}).operator*().threads[0].finished.size(), 1u);
}

TEST_F(Reader, AFolderChangesWhenARecordIsAdded) {
  for (const char* const name : {"old", "new"}) std::filesystem::create_directory(folder_ + "/" + name);
  const timespec times[2] = {{1000, 0}, {1000, 500'000'000}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder_ + "/old").c_str(), times, 0), 0);
  const auto before = job_folders(folder_);
  EXPECT_EQ(before.size(), 2u);
  EXPECT_EQ(before.at("old"), 1000'500'000'000);
  write_file(folder_ + "/old/1.record", "");
  const auto after = job_folders(folder_);
  EXPECT_NE(after.at("old"), before.at("old"));
  EXPECT_EQ(after.at("new"), before.at("new"));
  EXPECT_TRUE(job_folders(folder_ + "/none").empty());
}

TEST_F(Reader, ARingKeepsItsLastCalls) {
  sample_->header.threads.set(2);
  sample_->threads[1].tid.set(77);
  for (int i = 0; i < 100; ++i) {
    begin_call(*sample_, 1, "MPI_Recv").tag.set(i);
    end_call(*sample_, 1);
  }
  write_file(path_, sample_.bytes());
  const auto rank = read_record(path_, {.finished_calls = 1000});
  ASSERT_TRUE(rank);
  ASSERT_EQ(rank->threads[1].finished.size(), ring_size);
  EXPECT_EQ(rank->threads[1].finished.front().tag, 100 - static_cast<int>(ring_size));
}

TEST_F(Reader, ACallThatWasBeingWrittenIsTorn) {
  CallRecord& call = begin_call(*sample_, 0, "MPI_Send");
  call.sequence.set(1);
  const ThreadSnapshot thread = good().threads.at(0);
  EXPECT_TRUE(thread.in_mpi && thread.torn);
  EXPECT_FALSE(thread.current);
}

TEST_F(Reader, RequestsSitesAndPeers) {
  sample_->request_keys[5].set(0x1234);
  sample_->requests[5].function.set(function_number("MPI_Irecv"));
  sample_->requests[5].active.set(1);
  sample_->requests[5].peer.set(2);
  sample_->requests[5].waiter.set(2);
  sample_->request_keys[6].set(0x1235);  // inactive
  sample_->header.modules.set(1);
  set_text(sample_->modules[0].path, "/usr/bin/solver");
  sample_->modules[0].build_id_bytes = 20;
  sample_->header.sites.set(1);
  sample_->header.frames.set(2);
  sample_->sites[0].address.set(0x1000);
  sample_->sites[0].frame.set(0);
  sample_->frames[0] = {0x1000, 0, 1};
  sample_->frames[1] = {0x2000, 9, no_index};  // module 9 is not in use
  sample_->peers[0].key.set(6);
  sample_->peers[0].sent_messages.set(4);
  sample_->peers[1].key.set((std::uint64_t{2} << 32) | 1);
  const RankSnapshot rank = good();
  ASSERT_EQ(rank.requests.size(), 1u);
  EXPECT_EQ(rank.requests[0].peer, 2);
  EXPECT_EQ(rank.requests[0].waiter, 2);
  ASSERT_EQ(rank.sites.size(), 1u);
  ASSERT_EQ(rank.sites[0].stack.size(), 2u);
  EXPECT_EQ(rank.sites[0].stack[1].address, 0x2000u);
  EXPECT_EQ(rank.sites[0].stack[1].module, no_index);
  EXPECT_EQ(rank.modules.at(0).build_id.size(), 20u);
  ASSERT_EQ(rank.peers.size(), 2u);
  EXPECT_EQ(rank.peers[0].communicator, no_index);
  EXPECT_EQ(rank.peers[0].rank, 5u);
  EXPECT_EQ(rank.peers[1].communicator, 1u);
  EXPECT_EQ(rank.peers[1].rank, 0u);
}

TEST_F(Reader, TheRequestsForWhichAThreadWaits) {
  for (unsigned i = 0; i < 4; ++i) {
    sample_->request_keys[i].set(0x1000 + i);
    sample_->requests[i].active.set(1);
  }
  const std::uint32_t handles[] = {0x1002, 0x2c000000, 0x1000};
  std::memcpy(sample_->main_wait_list, handles, sizeof handles);
  const auto waiters = [&] {
    std::vector<int> all;
    for (const RequestSnapshot& request : good().requests) all.push_back(request.waiter);
    return all;
  };
  sample_->threads[0].wait_list.set(wait_list_of(0, 3));
  EXPECT_EQ(waiters(), (std::vector<int>{0, 0, 0, 0}));  // before the call
  begin_call(*sample_, 0, "MPI_Waitall");
  EXPECT_EQ(waiters(), (std::vector<int>{1, 0, 1, 0}));
  sample_->threads[0].wait_list.set(wait_list_of(0, 1));
  EXPECT_EQ(waiters(), (std::vector<int>{0, 0, 1, 0}));
  sample_->header.handle_bytes = 8;
  EXPECT_EQ(waiters(), (std::vector<int>{0, 0, 0, 0}));
  sample_->header.handle_bytes = 4;
  end_call(*sample_, 0);
  EXPECT_EQ(waiters(), (std::vector<int>{0, 0, 0, 0}));
  begin_call(*sample_, 0, "MPI_Recv");
  EXPECT_EQ(waiters(), (std::vector<int>{0, 0, 0, 0}));  // the list is that of an earlier call
}

TEST_F(Reader, LargeMessagesAsTheWriterLeftThem) {
  MessageLog log(*sample_);
  PeerTable peers(*sample_);
  const std::uint16_t three = peers.index_of(peers.find(PeerTable::key_in_world(3)));
  const std::uint16_t other = peers.index_of(peers.find(PeerTable::key_in(2, 0)));
  constexpr std::uint32_t written = max_messages + 10;
  for (std::uint32_t number = 1; number <= written; ++number) {
    const bool received = number % 2 == 0;
    log.add({static_cast<std::uint16_t>((number % 3 ? three : other) | (received ? received_flag : 0)), any_tag, number,
             std::uint64_t{number} << 20, 1'000'000 + 160 * number},
            {1'000'000 + 320 * number, 1'000'000 + 480 * number, number});
  }
  sample_->messages[5].sequence.set(message_sequence(0));  // its writer was stopped before it came to this one
  const RankSnapshot rank = good(1000);
  ASSERT_EQ(rank.messages.size(), max_messages - 1);
  std::uint32_t expected = 11;
  for (const MessageSnapshot& message : rank.messages) {
    if (expected == max_messages + 6) ++expected;
    ASSERT_EQ(message.number, expected);
    ASSERT_EQ(message.peer, expected % 3 ? 3u : 0u);
    ASSERT_EQ(message.communicator, expected % 3 ? no_index : 2u);
    ASSERT_EQ(message.received, expected % 2 == 0);
    ASSERT_EQ(message.tag, 0xffff);
    ASSERT_EQ(message.together, expected);
    ASSERT_EQ(message.bytes, std::min(std::uint64_t{expected} << 20, std::uint64_t{0xffffffff}));
    ASSERT_EQ(message.posted, 1'000'000u + 160 * expected);
    ASSERT_EQ(message.waited, 1'000'000u + 320 * expected);
    ASSERT_EQ(message.completed, 1'000'000u + 480 * expected);
    ++expected;
  }
  // The messages that remain are those that other ranks choose, too.
  const RankSnapshot few = good(100);
  ASSERT_GT(few.messages.size(), 20u);
  ASSERT_LE(few.messages.size(), 100u);
  std::uint32_t largest = 0;
  for (const MessageSnapshot& message : few.messages) largest = std::max(largest, MessageLog::hash(message.number));
  for (const MessageSnapshot& message : rank.messages)
    EXPECT_TRUE(MessageLog::hash(message.number) > largest ||
                std::any_of(few.messages.begin(), few.messages.end(),
                            [&](const MessageSnapshot& each) { return each.number == message.number; }));
  EXPECT_TRUE(good(0).messages.empty());
}

TEST_F(Reader, IndicesOutOfRangeAreNone) {
  CallRecord& call = begin_call(*sample_, 0, "MPI_Send", 70000);
  call.site.set(3);
  call.function.set(60000);
  sample_->header.threads.set(1u << 31);
  sample_->header.sites.set(0);
  const RankSnapshot rank = good();
  ASSERT_TRUE(rank.threads.at(0).current);
  EXPECT_EQ(rank.threads[0].current->communicator, no_index);
  EXPECT_EQ(rank.threads[0].current->site, no_index);
  EXPECT_EQ(rank.threads[0].current->function, no_function);
}

TEST_F(Reader, FunctionsOfAnotherTableAreNotNamed) {
  begin_call(*sample_, 0, "MPI_Send");
  sample_->header.function_hash ^= 1;
  const RankSnapshot rank = good();
  EXPECT_FALSE(rank.functions_known);
  EXPECT_EQ(rank.threads.at(0).current->function, no_function);
}

TEST_F(Reader, ARingOfCallersEnds) {
  sample_->header.sites.set(1);
  sample_->header.frames.set(1);
  sample_->frames[0] = {1, 0, 0};
  EXPECT_LE(good().sites.at(0).stack.size(), 64u);
}

TEST_F(Reader, TextWithoutAnEndAndControlCharacters) {
  std::memset(sample_->header.host, 'x', sizeof sample_->header.host);
  set_text(sample_->header.executable, "/a\033[2Jb");
  const RankSnapshot rank = good();
  EXPECT_EQ(rank.host, std::string(64, 'x'));
  EXPECT_EQ(rank.executable, "/a?[2Jb");
}

TEST_F(Reader, FilesThatAreNotRecords) {
  EXPECT_NE(refused().find("can't read"), std::string::npos);
  write_file(path_, "short");
  EXPECT_NE(refused().find("has 5 bytes"), std::string::npos);
  write_file(path_, std::string(record_file_bytes, 'x'));
  EXPECT_NE(refused().find("is not a record; remove it"), std::string::npos);
  write_file(path_, std::string(record_file_bytes, '\0'));
  EXPECT_NE(refused().find("not begun"), std::string::npos);
  sample_->header.version = record_version + 1;
  write_file(path_, sample_.bytes());
  EXPECT_NE(refused().find("version " + std::to_string(record_version + 1)), std::string::npos);
}

TEST_F(Reader, FilesThatAreNotRegular) {
  write_file(folder_ + "/real", sample_.bytes());
  ASSERT_EQ(symlink((folder_ + "/real").c_str(), path_.c_str()), 0);
  refused();
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refused().find("not a regular file"), std::string::npos);
  unlink(path_.c_str());
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_NE(refused().find("not a regular file"), std::string::npos);
}

TEST_F(Reader, AFileOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  write_file(path_, sample_.bytes());
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  EXPECT_NE(refused().find("belongs to user 12345"), std::string::npos);
}

TEST_F(Reader, JobsOfAFolder) {
  EXPECT_TRUE(read_jobs(folder_ + "/absent")->empty());
  for (const char* job : {"b", "a"}) {
    std::filesystem::create_directory(folder_ + "/" + job);
    for (int rank : {1, 0}) {
      sample_->header.world_rank.set(rank);
      write_file(folder_ + "/" + job + "/" + std::to_string(20 - rank) + ".record", sample_.bytes());
    }
    write_file(folder_ + "/" + job + "/notes", "");
  }
  write_file(folder_ + "/a/3.record", "");
  std::filesystem::create_directory(folder_ + "/empty");
  std::filesystem::create_symlink(folder_ + "/a", folder_ + "/link");
  const auto jobs = read_jobs(folder_);
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].name, "a");
  ASSERT_EQ((*jobs)[0].ranks.size(), 2u);
  EXPECT_EQ((*jobs)[0].ranks[0].world_rank, 0);
  EXPECT_EQ((*jobs)[0].problems.size(), 1u);
  EXPECT_TRUE((*jobs)[1].problems.empty());
}

/// A number that depends on all fields of a snapshot.
std::uint64_t digest(const RankSnapshot& rank) {
  std::uint64_t sum = rank.job.size() + rank.host.size() + rank.executable.size();
  for (const ThreadSnapshot& thread : rank.threads) {
    sum += thread.calls + thread.channel.size() + (thread.current ? thread.current->bytes : 0);
    for (const CallSnapshot& call : thread.finished) {
      sum += call.bytes;
      if (call.site != no_index) sum += rank.sites.at(call.site).address;
      if (call.function != no_function) sum += recorded_functions()[call.function].name[4];
    }
  }
  for (const CommunicatorSnapshot& c : rank.communicators) sum += c.name.size() + c.index;
  for (const SiteSnapshot& site : rank.sites)
    for (const FrameSnapshot& frame : site.stack)
      if (frame.module != no_index) sum += rank.modules.at(frame.module).path.size();
  return sum;
}

/// A file with something in every table.
void fill(RecordFile& file) {
  file.header.threads.set(3);
  file.header.sites.set(20);
  file.header.modules.set(4);
  file.header.frames.set(50);
  for (unsigned slot = 0; slot < 3; ++slot) {
    file.threads[slot].tid.set(static_cast<std::uint32_t>(getpid()) + slot);
    for (unsigned i = 0; i < 30; ++i) {
      begin_call(file, slot, "MPI_Send").site.set(i % 20);
      if (i < 29) end_call(file, slot);
    }
  }
  for (unsigned i = 0; i < 50; ++i) file.frames[i] = {i, i % 4, i ? i - 1 : no_index};
  for (unsigned i = 0; i < 20; ++i) file.sites[i].frame.set(i * 2);
  for (unsigned i = 0; i < 10; ++i) {
    file.request_keys[i].set(i + 1);
    file.requests[i].active.set(1);
    file.peers[i].key.set(i + 1);
  }
}

TEST_F(Reader, RandomMutationsOfAFile) {
  fill(*sample_);
  const std::string valid = sample_.bytes();
  std::mt19937_64 random(1);
  // Most mutations hit what is in use: the header, the threads, the first records of each table.
  const std::size_t interesting[] = {0, offsetof(RecordHeader, state), 4096, 8192, 8192 + main_ring_size * 64};
  int accepted = 0;
  for (int i = 0; i < test::repetitions(4000); ++i) {
    std::string bytes = valid;
    for (int k = static_cast<int>(random() % 40); k >= 0; --k) {
      const std::size_t at =
          random() % 2 ? interesting[random() % std::size(interesting)] + random() % 512 : random() % bytes.size();
      if (at < 12 && i % 8) continue;  // a wrong magic ends the reading at once
      static constexpr unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
      bytes[at] = static_cast<char>(random() % 2 ? extremes[random() % 6] : random());
    }
    if (i % 16 == 0) bytes.resize(random() % (bytes.size() + 1));
    write_file(path_, bytes);
    const auto rank = read_record(path_, {.finished_calls = random() % 2 ? 16u : 2000u});
    if (rank)
      digest(*rank), ++accepted;
    else
      ASSERT_TRUE(!rank.error().text.empty() && rank.error().text.find('\n') == std::string::npos);
  }
  EXPECT_GT(accepted, test::repetitions(500));
}

TEST_F(Reader, RandomBytesBehindAValidHeader) {
  std::mt19937_64 random(2);
  const std::string valid = sample_.bytes();
  for (int i = 0; i < test::repetitions(300); ++i) {
    std::string bytes(record_file_bytes, '\0');
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const std::uint64_t word = random() >> (random() % 64);
      std::memcpy(bytes.data() + at, &word, 8);
    }
    const std::size_t kept = i % 3 ? offsetof(RecordHeader, state) + 16 : 12;
    bytes.replace(0, kept, valid, 0, kept);
    write_file(path_, bytes);
    if (const auto rank = read_record(path_, {.finished_calls = 100})) digest(*rank);
  }
}

TEST_F(Reader, AFileThatShrinksWhileItIsRead) {
  write_file(path_, sample_.bytes());
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      if (truncate(path_.c_str(), 100) != 0 || truncate(path_.c_str(), record_file_bytes) != 0) return;
      write_file(path_, sample_.bytes());
    }
  });
  int refused = 0;
  for (int i = 0; i < test::repetitions(2000) || (refused == 0 && i < 100000); ++i) refused += !read_record(path_);
  done = true;
  other.join();
  EXPECT_GT(refused, 0);
}

/// Every field of a call that a writer thread writes depends on the call's number; a mixed record would not fit.
TEST_F(Reader, NoMixedRecordIsAccepted) {
  write_file(path_, sample_.bytes());
  const int descriptor = open(path_.c_str(), O_RDWR);
  auto* const file =
      static_cast<RecordFile*>(mmap(nullptr, record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  ASSERT_NE(static_cast<void*>(file), MAP_FAILED);
  file->header.threads.set(2);
  file->threads[1].tid.set(77);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t n = 0; !done; ++n) {
      CallRecord& call = file->rings[0][n % ring_size];
      call.sequence.set(2 * n + 1);
      std::atomic_thread_fence(std::memory_order_release);
      call.entered.set(n);
      call.left.set(0);
      call.peer.set(static_cast<std::int32_t>(n & 0xffffff));
      call.tag.set(static_cast<std::int32_t>(n & 0xffffff));
      call.bytes.set(n);
      call.ordinal.set(static_cast<std::uint32_t>(n));
      call.sequence.atomic().store(2 * n + 2, std::memory_order_release);
      file->threads[1].calls.atomic().store(n + 1, std::memory_order_release);
      call.left.set(n + 2);
      // A turn of the ring takes about as long as the reading of a record.
      for (unsigned i = 0; i < n / 64 % 64 * 64; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
  std::uint64_t whole = 0, mixed = 0;
  for (int i = 0; i < test::repetitions(3000) || (whole < 1000 && i < 100000); ++i) {
    const auto rank = read_record(path_);
    ASSERT_TRUE(rank) << rank.error().text;
    for (const CallSnapshot& call : rank->threads.at(1).finished) {
      const std::uint64_t n = call.number;
      ++whole;
      mixed += call.entered != n || call.bytes != n || call.ordinal != static_cast<std::uint32_t>(n) ||
               call.peer != static_cast<std::int32_t>(n & 0xffffff) || call.tag != call.peer ||
               (call.left != 0 && call.left != n + 2);
    }
  }
  done = true;
  writer.join();
  munmap(file, record_file_bytes);
  close(descriptor);
  EXPECT_EQ(mixed, 0u) << "of " << whole;
  EXPECT_GT(whole, 0u);
}

/// Communicators and requests have no sequence number; a record that changes while it is read is left out.
TEST_F(Reader, RecordsThatChangeAreLeftOut) {
  sample_->communicators[0].uid.set(0);
  sample_->communicators[0].size.set(0);
  sample_->communicators[0].rank.set(0);
  sample_->requests[0].tag.set(0);
  write_file(path_, sample_.bytes());
  const int descriptor = open(path_.c_str(), O_RDWR);
  auto* const file =
      static_cast<RecordFile*>(mmap(nullptr, record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  ASSERT_NE(static_cast<void*>(file), MAP_FAILED);
  file->request_keys[0].set(1);
  file->requests[0].active.set(1);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint32_t n = 0; !done; ++n) {
      const auto number = static_cast<std::int32_t>(n & 0xffffff);
      CommunicatorRecord& c = file->communicators[0];
      c.kind.set(0);
      file->request_keys[0].set(0);
      std::atomic_thread_fence(std::memory_order_release);
      c.uid.set(static_cast<std::uint64_t>(number));
      c.size.set(number);
      c.rank.set(number);
      file->requests[0].bytes.set(static_cast<std::uint64_t>(number));
      file->requests[0].tag.set(number);
      c.kind.atomic().store(1, std::memory_order_release);
      file->request_keys[0].atomic().store(1, std::memory_order_release);
    }
  });
  std::uint64_t torn = 0, mixed = 0;
  for (int i = 0; i < test::repetitions(2000) || (torn == 0 && i < 100000); ++i) {
    const auto rank = read_record(path_);
    ASSERT_TRUE(rank) << rank.error().text;
    torn += rank->torn;
    for (const CommunicatorSnapshot& c : rank->communicators)
      mixed += c.uid != static_cast<std::uint64_t>(c.size) || c.rank != c.size;
    for (const RequestSnapshot& r : rank->requests) mixed += r.bytes != static_cast<std::uint64_t>(r.tag);
  }
  done = true;
  writer.join();
  munmap(file, record_file_bytes);
  close(descriptor);
  EXPECT_GT(torn, 0u);
  EXPECT_EQ(mixed, 0u);
}

}  // namespace
}  // namespace bestride::inline telemetry
