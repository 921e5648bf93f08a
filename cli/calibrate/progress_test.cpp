// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/progress.hpp"

#include <gtest/gtest.h>

namespace bestride::inline cli {
namespace {

TEST(ProgressLine, FitsEveryWidth) {
  for (std::size_t width = 1; width <= 200; ++width)
    for (const char* what : {"calibrating", "measuring the links between hosts"})
      for (const double part : {0.0, 0.37, 1.0})
        for (const char* at : {"", "strided sends, 64 KiB in blocks of 8 B, between the ranks of a node"})
          EXPECT_LE(progress_line(what, part, 12345, at, width).size(), width);
}

TEST(ProgressLine, ShowsBarFiguresAndItem) {
  EXPECT_EQ(progress_line("calibrating", 0.5, 12, "", 79), "calibrating [###############...............]  50 %  12 s");
  EXPECT_EQ(progress_line("calibrating", 1, 90, "", 40), "calibrating [##############] 100 %  90 s");
  EXPECT_EQ(progress_line("calibrating", 0.5, 12, "strided sends", 79),
            "calibrating [###############...............]  50 %  12 s  strided sends");
  EXPECT_EQ(progress_line("calibrating", 0.4, 12, "strided sends", 40), "calibrating [##...]  40 %  12 s  strided");
}

}  // namespace
}  // namespace bestride::inline cli
