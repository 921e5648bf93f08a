// SPDX-License-Identifier: Apache-2.0
// Where a Python program has raised SystemExit, as a reader sees it.
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

TEST(SystemExit, OfAProgramThatGoesOnIsLeftOut) {
  SampleRecord sample;
  begin_record(*sample, getpid(), own_start_time(), 3, 8);
  char name[] = "/tmp/bestride-exit-XXXXXX";
  const std::string folder = mkdtemp(name);
  const auto read = [&] {
    write_file(folder + "/1.record", sample.bytes());
    auto rank = read_record(folder + "/1.record", {16});
    EXPECT_TRUE(rank);
    return rank ? std::move(*rank) : RankSnapshot{};
  };
  begin_collective(*sample, "MPI_Barrier");
  end_call(*sample, 0);
  EXPECT_EQ(read().system_exit, "");
  EndNote& note = sample->ends[static_cast<unsigned>(EndKind::system_exit)];
  const char frames[] = "  File \"solver.py\", line 12 in load\n";
  note.at.set(ticks());
  note.thread.set(0);
  set_text(note.text, frames);
  note.calls.set(2);
  // A program frees objects before it ends.
  for (int calls = 0; calls <= 4; ++calls) {
    const RankSnapshot rank = read();
    EXPECT_EQ(rank.system_exit, frames) << calls;
    EXPECT_FALSE(rank.end) << "it is no fault";
    begin_collective(*sample, "MPI_Comm_free");
    end_call(*sample, 0);
  }
  EXPECT_EQ(read().system_exit, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bestride::inline telemetry
