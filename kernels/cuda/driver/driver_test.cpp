// SPDX-License-Identifier: Apache-2.0
// Finding the driver: not before the application loads it, and only if it has all required entry points.
#include "kernels/cuda/driver/driver.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/device/options.hpp"
#include "kernels/cuda/testing/test_application.hpp"

namespace bestride::cuda {
namespace {

using test::Application;

/// Must run first in the process: afterwards the driver stays loaded.
TEST(Driver, IsNotLoadedUntilTheApplicationLoadsIt) {
  EXPECT_EQ(Driver::get(), nullptr);
  EXPECT_EQ(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), nullptr);
  Application& app = Application::get();
  ASSERT_TRUE(app.loaded());
  const Driver* driver = Driver::get();
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(Driver::get(), driver);
  EXPECT_EQ(Driver::open(), driver);
  EXPECT_GE(driver->version(), 12000);
  if (!app.real()) {
    EXPECT_EQ(app.calls("cuInit"), 0);
  }
}

TEST(Driver, TooOldOrIncompleteIsRejectedWithAReason) {
  Application& app = Application::get();
  const auto pretend = app.entry<void (*)(int, const char*)>("fake_cuda_pretend");
  if (!pretend) GTEST_SKIP() << "needs the stand-in";
  pretend(11080, "");
  const auto old = Driver::bind(app.library());
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().text,
            "the CUDA driver is for CUDA 11.8, older than 12.0: calls with device memory return an MPI error; update "
            "the driver, or set BESTRIDE_GPU=off");
  for (const char* missing : {"cuCtxGetId", "cuLaunchKernel", "cuEventSynchronize"}) {
    pretend(13000, missing);
    const auto incomplete = Driver::bind(app.library());
    ASSERT_FALSE(incomplete);
    EXPECT_NE(incomplete.error().text.find(missing), std::string::npos);
  }
  pretend(12000, "");
  EXPECT_TRUE(Driver::bind(app.library()));
  pretend(13000, "");
}

TEST(Driver, ErrorsNameTheCallAndTheRemedy) {
  const Driver* driver = Driver::get();
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(driver->error("cuMemAlloc", code::out_of_memory).text,
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY; lower BESTRIDE_GPU_LIMIT to leave the "
            "application more");
  EXPECT_TRUE(is_context_lost(code::context_is_destroyed));
  EXPECT_TRUE(is_context_lost(code::deinitialized));
  EXPECT_FALSE(is_context_lost(code::out_of_memory));
  EXPECT_FALSE(is_context_lost(code::not_initialized));
}

TEST(Options, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(GpuKernel::ordered); ++i) {
    GpuKernel kernel = GpuKernel::automatic;
    EXPECT_TRUE(parse(name(static_cast<GpuKernel>(i)), &kernel));
    EXPECT_EQ(kernel, static_cast<GpuKernel>(i));
  }
  GpuKernel kernel = GpuKernel::words;
  EXPECT_FALSE(parse("word", &kernel));
  EXPECT_EQ(kernel, GpuKernel::words);
}

}  // namespace
}  // namespace bestride::cuda
