// SPDX-License-Identifier: Apache-2.0
#include "cli/try/job_output.hpp"

#include <gtest/gtest.h>

namespace bestride::inline cli {
namespace {

TEST(JobOutput, LinesMayComeInAnyOrder) {
  EXPECT_EQ(compare_outputs({"rank 0\nrank 1\n", "rank 1\nrank 0\n"}, {"rank 1\nrank 0\n"}).kind,
            OutputComparison::same);
}

TEST(JobOutput, ADifferentResultDiffers) {
  const OutputDifference found = compare_outputs({"sum 10\n", "sum 10\n"}, {"sum 10\n", "sum 11\n"});
  EXPECT_EQ(found.kind, OutputComparison::differs);
  EXPECT_EQ(found.run, 1);
  EXPECT_EQ(found.missing, "sum 10");
  EXPECT_EQ(found.more, "sum 11");
}

TEST(JobOutput, TimesMayDifferIfTheyAlwaysDo) {
  EXPECT_EQ(
      compare_outputs({"time  9.75 s, error -1.5e-06\n", "time 10.25 s, error 2E-6\n"}, {"time 8 s, error 0\n"}).kind,
      OutputComparison::same_but_numbers);
}

TEST(JobOutput, AWordThatDiffersCountsBesideTimes) {
  const OutputDifference found = compare_outputs({"ok 1.5 s\n", "ok 1.6 s\n"}, {"failed 1.4 s\n"});
  EXPECT_EQ(found.kind, OutputComparison::differs);
  EXPECT_EQ(found.missing, "ok # s");
  EXPECT_EQ(found.more, "failed # s");
}

TEST(JobOutput, AMissingOrRepeatedLineDiffers) {
  EXPECT_EQ(compare_outputs({"a\na\n"}, {"a\n"}).kind, OutputComparison::differs);
  EXPECT_EQ(compare_outputs({"a\n"}, {"a\na\n"}).more, "a");
  EXPECT_EQ(compare_outputs({""}, {""}).kind, OutputComparison::same);
}

TEST(JobOutput, NothingIsSaidOfOutputThatVaries) {
  EXPECT_EQ(compare_outputs({"seed abc\n", "seed xyz\n"}, {"seed abc\n"}).kind, OutputComparison::varies);
}

}  // namespace
}  // namespace bestride::inline cli
