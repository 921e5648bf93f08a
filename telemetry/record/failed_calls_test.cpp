// SPDX-License-Identifier: Apache-2.0
// Calls that the MPI library passes to an error handler, as a reader sees them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "telemetry/record/process_state.hpp"
#include "telemetry/record/reader.hpp"
#include "telemetry/record/sample_record.hpp"

namespace bestride::inline telemetry {
namespace {

/// Its call has failed, so the other members have made the next one without it.
TEST(FailedCalls, AThreadInAnErrorHandlerIsOutsideMpi) {
  SampleRecord sample;
  begin_record(*sample, getpid(), own_start_time(), 3, 8);
  char name[] = "/tmp/bestride-failed-XXXXXX";
  const std::string folder = mkdtemp(name);
  const auto read = [&] {
    write_file(folder + "/1.record", sample.bytes());
    auto rank = read_record(folder + "/1.record", {16});
    EXPECT_TRUE(rank);
    return rank ? std::move(*rank) : RankSnapshot{};
  };
  begin_collective(*sample, "MPI_Barrier");
  end_call(*sample, 0);
  begin_collective(*sample, "MPI_Bcast");
  EndNote& note = sample->ends[static_cast<unsigned>(EndKind::mpi_error)];
  note.at.set(ticks());
  note.thread.set(0);
  set_text(note.text, "Invalid count\n");
  note.calls.set(3);
  RankSnapshot rank = read();
  ASSERT_EQ(rank.threads.size(), 1u);
  EXPECT_FALSE(rank.threads[0].in_mpi || rank.threads[0].current);
  ASSERT_EQ(rank.threads[0].finished.size(), 2u);
  EXPECT_EQ(rank.threads[0].finished[1].function, function_number("MPI_Bcast"));
  EXPECT_EQ(rank.threads[0].finished[1].ordinal, 0u);
  EXPECT_EQ(rank.communicators.at(0).collectives, 1u);
  ASSERT_TRUE(rank.end);
  // The handler has left the call, which another one follows.
  end_call(*sample, 0);
  begin_collective(*sample, "MPI_Allreduce");
  rank = read();
  EXPECT_TRUE(rank.threads[0].in_mpi);
  EXPECT_FALSE(rank.end);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bestride::inline telemetry
