// SPDX-License-Identifier: Apache-2.0
// Damaged records of a job, through everything that is printed and written of a watched job. AddressSanitizer and
// UndefinedBehaviorSanitizer look at it, too; the snapshots themselves are checked in telemetry/record/reader_test.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "cli/mpi_report/metrics.hpp"
#include "cli/mpi_report/page.hpp"
#include "cli/mpi_report/trace.hpp"
#include "cli/watch/finding_text.hpp"
#include "cli/watch/verdict_file.hpp"
#include "cli/watch/watched_job.hpp"
#include "cli/where/output.hpp"
#include "telemetry/record/sample_record.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline cli {
namespace {

constexpr int ranks = 4;

class MutatedRecords : public testing::Test {
 protected:
  MutatedRecords() {
    char name[] = "/tmp/bestride-mutated-XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::create_directory(folder_ + "/job");
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t child = fork();
      if (child == 0)
        for (;;) pause();
      children_[static_cast<std::size_t>(rank)] = child;
    }
  }
  ~MutatedRecords() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  /// Rank 3 makes another collective call than the others; all have messages, requests, places, notes of an end.
  std::string valid(int rank) const {
    SampleRecord file;
    const pid_t pid = children_[static_cast<std::size_t>(rank)];
    begin_record(*file, pid, process_status(pid).start_time, rank, ranks);
    file->header.threads.set(2);
    file->threads[1].tid.set(static_cast<std::uint32_t>(pid));
    file->header.sites.set(8);
    file->header.modules.set(2);
    file->header.frames.set(12);
    for (unsigned i = 0; i < 12; ++i) file->frames[i] = {i * 16, i % 2, i ? i - 1 : no_index};
    for (unsigned i = 0; i < 8; ++i) {
      file->sites[i].frame.set(i);
      file->sites[i].function.set(function_number("MPI_Send"));
      file->sites[i].calls.set(10 * (i + 1));
      file->sites[i].ticks.set(100000 * (i + 1));
      file->sites[i].histogram[i].set(10);
    }
    set_text(file->modules[0].path, "/usr/bin/solver");
    for (int i = 0; i < 30; ++i) {
      for (unsigned slot = 0; slot < 2; ++slot) {
        CallRecord& call = begin_call(*file, slot, i % 2 ? "MPI_Send" : "MPI_Recv");
        call.peer.set((rank + 1) % ranks), call.tag.set(i), call.bytes.set(8192),
            call.site.set(static_cast<unsigned>(i) % 8);
        end_call(*file, slot);
      }
      begin_collective(*file, "MPI_Allreduce").bytes.set(8);
      end_call(*file, 0);
    }
    for (unsigned i = 0; i < 6; ++i) {
      file->request_keys[i].set(i + 1);
      file->requests[i].function.set(function_number("MPI_Irecv"));
      file->requests[i].active.set(1);
      file->requests[i].peer.set(static_cast<std::int32_t>(i) % ranks);
      file->peers[i].key.set(i % ranks + 1);
      file->peers[i].sent_messages.set(30), file->peers[i].sent_bytes.set(1 << 20);
      file->messages[i].sequence.set(message_sequence(i));
      file->messages[i].peer.set(static_cast<std::uint16_t>(i));
      file->messages[i].bytes.set(8192);
      file->messages[i].completed.set(1000);
    }
    file->header.messages.set(6);
    begin_collective(*file, rank == 3 ? "MPI_Barrier" : "MPI_Allreduce").bytes.set(8);
    EndNote& note = file->ends[static_cast<unsigned>(EndKind::mpi_error)];
    set_text(note.text, "an error");
    return file.bytes();
  }

  std::string path(int rank) const {
    return folder_ + "/job/" + std::to_string(children_[static_cast<std::size_t>(rank)]) + ".record";
  }

  std::string folder_;
  std::array<pid_t, ranks> children_;
};

/// Flipped bits, extreme bytes and words, exchanged parts, cut ends; mostly where a record is in use.
void mutate(std::string& bytes, std::mt19937_64& random) {
  static const std::size_t used[] = {
      offsetof(RecordHeader, process_start), offsetof(RecordHeader, state),  offsetof(RecordFile, threads),
      offsetof(RecordFile, main_ring),       offsetof(RecordFile, rings),    offsetof(RecordFile, communicators),
      offsetof(RecordFile, request_keys),    offsetof(RecordFile, requests), offsetof(RecordFile, peers),
      offsetof(RecordFile, messages),        offsetof(RecordFile, sites),    offsetof(RecordFile, modules),
      offsetof(RecordFile, frames),          offsetof(RecordFile, ends),     offsetof(RecordFile, main_wait_list)};
  for (std::uint64_t k = random() % 24; k > 0; --k) {
    const std::size_t at = (used[random() % std::size(used)] + random() % 512) % (bytes.size() - 8);
    static constexpr std::uint64_t extremes[] = {
        0,    1, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 63, ~(1ULL << 63), 0x7ff0000000000000, 0x7ff8000000000000,
        ~0ULL};
    const std::uint64_t word = random() % 2 ? extremes[random() % std::size(extremes)] : random();
    switch (random() % 4) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 1: std::memcpy(bytes.data() + at, &word, 4); break;
      case 2: std::memcpy(bytes.data() + at / 8 * 8, &word, 8); break;
      default: bytes.replace(at, 8, bytes, used[random() % std::size(used)], 8); break;
    }
  }
  if (random() % 24 == 0) bytes.resize(random() % bytes.size());
  if (random() % 24 == 0) bytes[offsetof(RecordHeader, version)] ^= 1;
}

void expect_json(const std::string& text, int round) {
  EXPECT_TRUE(nlohmann::json::accept(text)) << "round " << round << ": " << text.substr(0, 200);
}

/// At most so many lines, without control characters: it goes to a terminal.
void expect_lines(const std::string& text, std::size_t most, int round) {
  EXPECT_LE(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), most) << round;
  for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << "round " << round;
}

TEST_F(MutatedRecords, GiveTextsAndFilesThatAreWhole) {
  std::mt19937_64 random(5);
  std::size_t seen = 0, findings = 0, problems = 0;
  for (int round = 0; round < test::repetitions(300); ++round) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::string bytes = valid(rank);
      if (random() % 4) mutate(bytes, random);
      write_file(path(rank), bytes);
    }
    WatchedJob job("job", 0);
    job.add_local(folder_, "job");
    // The next observation confirms what one has found. After a longer time the job would count as stopped.
    for (const double seconds : {0.1, 1.1, 3.0, 5.0, 7.0, 8.0, 9.0}) {
      if (seconds == 8.0) write_file(path(0), valid(1).replace(0, 4096, valid(0), 0, 4096));
      const WatchedJob::Changes changes =
          job.observe(seconds, [=] { return seconds == 9.0 ? JobPhase::over : JobPhase::running; });
      for (const std::size_t i : changes.begun) {
        const Finding& finding = job.reported()[i].finding;
        ++findings;
        expect_lines(finding_text(finding, job.view(), nullptr, seconds, false), 40, round);
      }
      for (const Finding& finding : job.working()) expect_lines(working_text(finding, job.view(), 12), 0, round);
    }
    seen += job.ranks().size();
    problems += job.view().job.problems.size();
    expect_json(verdict_json(job, 9, 1, nullptr), round);
    expect_lines(where_text({job.view()}, {.calls = 20}), 1000, round);
    CallSites places;
    const MpiReport report = make_mpi_report(job.view(), 0, places);
    expect_lines(mpi_report_text(report), 1000, round);
    const std::string json = mpi_report_json(report);
    expect_json(json, round);
    EXPECT_TRUE(parse_mpi_report(json)) << round;
    expect_json(chrome_trace(job.view(), report, places), round);
    EXPECT_NE(mpi_page(job.view(), report, {}).find("</html>"), std::string::npos);
    EXPECT_TRUE(mpi_metrics(report).ends_with("# EOF\n"));
  }
  EXPECT_GT(seen, test::repetitions(300U));
  EXPECT_GT(findings, test::repetitions(100U));
  EXPECT_GT(problems, test::repetitions(10U));
}

}  // namespace
}  // namespace bestride::inline cli
