// SPDX-License-Identifier: Apache-2.0
// Effects of the environment, one case per process: CMake runs each with its variable set (`--gtest_filter`).
#include <algorithm>

#include "datatype/build.hpp"
#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/cuda/transfer/transfer.hpp"

namespace bestride::cuda {
namespace {

using namespace test;

/// BESTRIDE_GPU=off
TEST(Off, NoDriverIsUsedThoughTheApplicationHasOne) {
  Application& app = Application::get();
  ASSERT_TRUE(app.loaded());
  EXPECT_EQ(Driver::get(), nullptr);
  EXPECT_EQ(Driver::open(), nullptr);
  if (!app.initialize()) GTEST_SKIP() << "no CUDA device";
  app.use_device(0);
  const TestMemory memory(MemoryKind::device, 512);
  EXPECT_EQ(where(memory.data()).kind, MemoryKind::host);
}

/// BESTRIDE_CUDA_DRIVER does not name a library.
TEST(NamedDriver, FailureToLoadIsReportedOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Driver::get(), nullptr);
  EXPECT_EQ(Driver::get(), nullptr);
  EXPECT_EQ(Driver::open(), nullptr);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("BESTRIDE_CUDA_DRIVER=/nowhere/libcuda.so.1 can't be loaded"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

/// BESTRIDE_CUDA_DRIVER names the stand-in driver, which the application does not load.
TEST(NamedDriver, IsLoadedAtTheFirstQuery) { EXPECT_NE(Driver::get(), nullptr); }

/// BESTRIDE_GPU_ORDER=default_stream: work that the application enqueued in its default stream is done before a byte is
/// packed.
class DefaultStream : public OnDevice {};
TEST_F(DefaultStream, IsSynchronized) {
  const DevicePtr one = device();
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 500, 48));
  const TestMemory user(MemoryKind::device, span_of(*layout));
  const DeviceLayoutPtr device_layout = *one->device_layout(layout);
  ASSERT_TRUE(one->kernel("bestride_move_small"));
  for (unsigned char round = 1; round <= 8; ++round) {
    // Enough work before the pack that it cannot have completed by chance.
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(app().call("cuMemsetD8Async", user.address(), 0, user.size(), static_cast<void*>(nullptr)),
                code::success);
    ASSERT_EQ(app().call("cuMemsetD8Async", user.address(), static_cast<int>(round), user.size(),
                         static_cast<void*>(nullptr)),
              code::success);
    auto packing = PackTransfer::start(one, device_layout, user.data(), {TransferMethod::pipelined, 1024, {}});
    ASSERT_TRUE(packing) << packing.error().text;
    while ((*packing)->poll() == Progress::pending) {
    }
    const auto* bytes = static_cast<const unsigned char*>((*packing)->data());
    EXPECT_EQ(std::count(bytes, bytes + layout->size(), round), layout->size());
  }
}

}  // namespace
}  // namespace bestride::cuda
