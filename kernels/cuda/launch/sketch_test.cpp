// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/sketch.hpp"

#include <gtest/gtest.h>

#include "datatype/build.hpp"

namespace bestride::cuda {
namespace {

LayoutPtr vector(std::int64_t count, std::int64_t block, std::int64_t stride) {
  return intern(*make_repeat(*make_block(0, block), count, stride));
}

TEST(Sketch, NamesKernelWordAndBox) {
  const KernelOptions automatic{};
  const auto said = [&](const LayoutPtr& layout) {
    const Result<Sketch> it = sketch(layout, Direction::pack, automatic);
    return it ? it->kernels + (it->box ? ", a box" : "") : it.error().text;
  };
  EXPECT_EQ(said(vector(1000, 8, 16)), "words 8, a box");
  EXPECT_EQ(said(vector(1000, 48, 96)), "words 16, a box");
  EXPECT_EQ(said(vector(1000, 4, -16)), "words 4");
  std::vector<std::int64_t> offsets, lengths(100, 4);
  for (std::int64_t i = 0; i < 100; ++i) offsets.push_back(12 * i * i);
  EXPECT_EQ(said(intern(*make_blocks(offsets, lengths))), "list 4");
  EXPECT_EQ(said(intern(Placed{})), "");
}

TEST(Sketch, NamesAForcedKernel) {
  const Result<Sketch> it = sketch(vector(1000, 8, 16), Direction::unpack, {.kernel = GpuKernel::bytes});
  ASSERT_TRUE(it);
  EXPECT_EQ(it->kernels, "words 1");
}

}  // namespace
}  // namespace bestride::cuda
