// SPDX-License-Identifier: Apache-2.0
// What a pointer points to: before the driver is initialized, in every kind of memory, on two devices, after memory is
// freed and its address reused, and after contexts are destroyed.
#include "kernels/cuda/driver/memory.hpp"

#include "datatype/build.hpp"
#include "kernels/cuda/testing/test_application.hpp"

namespace bestride::cuda {
namespace {

using namespace test;

/// Must run first in this process: the other tests initialize the driver.
TEST(BeforeInitialization, EverythingIsHost) {
  Application& app = Application::get();
  ASSERT_TRUE(app.loaded());
  int here = 0;
  EXPECT_EQ(where(&here).kind, MemoryKind::host);
  if (!app.real()) {
    EXPECT_EQ(app.calls("cuPointerGetAttributes"), 1);
    EXPECT_EQ(app.calls("cuInit"), 0);
    EXPECT_EQ(app.call("cuCtxSynchronize"), code::not_initialized) << "the query initialized the driver";
  }
}

class Memories : public OnDevice {};

TEST_F(Memories, OfEveryKind) {
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::managed, MemoryKind::device}) {
    const TestMemory memory(kind, 4096);
    for (const int at : {0, 1, 4095}) {
      const Memory found = where(memory.data() + at);
      EXPECT_EQ(found.kind, kind) << name(found.kind);
      if (kind == MemoryKind::host) continue;
      EXPECT_EQ(found.context, context_);
      EXPECT_EQ(found.device, 0);
      EXPECT_EQ(found.to_device, 0);
      EXPECT_LE(found.base, memory.address());
      EXPECT_GE(found.base + found.size, memory.address() + 4096);
      EXPECT_NE(found.buffer_id, 0u);
    }
  }
  EXPECT_EQ(where(nullptr).kind, MemoryKind::host);
}

TEST_F(Memories, AHostPointerCostsOneQuery) {
  int here = 0;
  app().fail("");
  where(&here);
  where(&here);
  if (stand_in()) {
    EXPECT_EQ(app().calls("cuPointerGetAttributes"), 2);
  }
}

TEST_F(Memories, AHostLayoutCostsTwoQueries) {
  std::vector<unsigned char> memory(1 << 16);
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 8), 1000, 24));
  app().fail("");
  EXPECT_EQ(where(*layout, memory.data()).kind, MemoryKind::host);
  if (stand_in()) {
    EXPECT_EQ(app().calls("cuPointerGetAttributes"), 2);
  }
}

TEST_F(Memories, AKnownAllocationCostsOneQuery) {
  const TestMemory memory(MemoryKind::device, 4096);
  where(memory.data());
  app().fail("");
  where(memory.data() + 100);
  if (stand_in()) {
    EXPECT_EQ(app().calls("cuPointerGetAttributes"), 1);
    EXPECT_EQ(app().calls("cuCtxGetId"), 0);
  }
}

TEST_F(Memories, ReusedAddressIsAnotherBuffer) {
  Address first = 0, second = 0;
  Memory before, after;
  {
    const TestMemory memory(MemoryKind::device, 4096);
    first = memory.address();
    before = where(memory.data());
  }
  if (stand_in()) {
    EXPECT_EQ(where(reinterpret_cast<void*>(first)).kind, MemoryKind::host);
  }
  const TestMemory memory(MemoryKind::device, 8192);
  second = memory.address();
  after = where(memory.data() + 5000);
  EXPECT_EQ(after.kind, MemoryKind::device);
  EXPECT_NE(before.buffer_id, after.buffer_id);
  EXPECT_GE(after.size, 8192u);
  if (stand_in()) {
    EXPECT_EQ(first, second);
  }
}

TEST_F(Memories, ReusedAddressOnAnotherDevice) {
  if (app().devices() < 2) GTEST_SKIP() << "one device";
  Address first = 0;
  {
    const TestMemory memory(MemoryKind::device, 4096);
    first = memory.address();
    EXPECT_EQ(where(memory.data()).device, 0);
  }
  const ContextHandle other = app().use_device(1);
  const TestMemory memory(MemoryKind::device, 4096);
  if (stand_in()) {
    EXPECT_EQ(first, memory.address());
  }
  EXPECT_EQ(where(memory.data()).device, 1);
  EXPECT_EQ(where(memory.data()).context, other);
}

TEST_F(Memories, OfPoolsBelongsToThePrimaryContext) {
  Address address = 0;
  ASSERT_EQ(app().call("cuMemAllocAsync", &address, std::size_t{4096}, static_cast<void*>(nullptr)), code::success);
  app().call("cuCtxSynchronize");
  const Memory found = where(reinterpret_cast<void*>(address));
  EXPECT_EQ(found.kind, MemoryKind::device);
  EXPECT_EQ(found.context, context_);
  app().call("cuMemFreeAsync", address, static_cast<void*>(nullptr));
  app().call("cuCtxSynchronize");
}

TEST_F(Memories, RegisteredHostMemoryIsPinned) {
  std::vector<unsigned char> memory(1 << 16);
  EXPECT_EQ(where(memory.data()).kind, MemoryKind::host);
  ASSERT_EQ(app().call("cuMemHostRegister_v2", static_cast<void*>(memory.data()), memory.size(), 0u), code::success);
  EXPECT_EQ(where(memory.data() + 1000).kind, MemoryKind::pinned);
  ASSERT_EQ(app().call("cuMemHostUnregister", static_cast<void*>(memory.data())), code::success);
  EXPECT_EQ(where(memory.data() + 1000).kind, MemoryKind::host);
}

TEST_F(Memories, OfADestroyedContext) {
  const ContextHandle context = app().make_context(0);
  TestMemory memory(MemoryKind::device, 4096);
  const Memory before = where(memory.data());
  EXPECT_EQ(before.context, context);
  ASSERT_EQ(app().call("cuCtxDestroy_v2", context), code::success);
  app().call("cuCtxSetCurrent", context_);
  EXPECT_EQ(where(memory.data()).kind, MemoryKind::host);
  EXPECT_FALSE(Device::of(before));
}

TEST_F(Memories, AfterTheDriverShutDown) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const TestMemory memory(MemoryKind::device, 4096);
  where(memory.data());
  app().shut_down(true);
  EXPECT_EQ(where(memory.data()).kind, MemoryKind::host);
  app().shut_down(false);
  EXPECT_EQ(where(memory.data()).kind, MemoryKind::device);
}

TEST_F(Memories, OfLayouts) {
  const TestMemory device(MemoryKind::device, 4096), other(MemoryKind::device, 4096), pinned(MemoryKind::pinned, 4096);
  std::vector<unsigned char> host(4096);
  const auto at = [](const void* p) { return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p)); };
  const auto pair = [&](const void* a, const void* b) {
    return where(*intern(
                     *make_blocks(std::vector<std::int64_t>{at(a) + 8, at(b) + 80}, std::vector<std::int64_t>{16, 24})),
                 nullptr)
        .kind;
  };
  EXPECT_EQ(pair(device.data(), device.data()), MemoryKind::device);
  EXPECT_EQ(pair(device.data(), other.data()), MemoryKind::device);
  EXPECT_EQ(pair(device.data(), host.data()), MemoryKind::mixed);
  EXPECT_EQ(pair(host.data(), device.data()), MemoryKind::mixed);
  EXPECT_EQ(pair(host.data(), pinned.data()), MemoryKind::mixed);
  EXPECT_EQ(pair(host.data(), host.data()), MemoryKind::host);
  EXPECT_EQ(where(*intern(*make_repeat(*make_block(0, 8), 10, 64)), device.data()).kind, MemoryKind::device);
  EXPECT_EQ(where(*intern(Placed{}), device.data()).kind, MemoryKind::host);
  // Both ends are host memory, the middle is device memory.
  const std::vector<std::int64_t> offsets{at(host.data()), at(device.data()), at(host.data()) + 100};
  EXPECT_EQ(where(*intern(*make_blocks(offsets, std::vector<std::int64_t>{8, 8, 8})), nullptr).kind, MemoryKind::mixed);
}

TEST_F(Memories, ManagedMemoryIsMovedInPlace) {
  const TestMemory managed(MemoryKind::managed, 4096), device(MemoryKind::device, 512), pinned(MemoryKind::pinned, 512);
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 8), 10, 16));
  const auto moved = [&](const TestMemory& memory) {
    return moved_by_gpu(where(memory.data()), *layout, memory.data());
  };
  EXPECT_TRUE(moved(device));
  EXPECT_FALSE(moved(pinned));
  EXPECT_TRUE(moved(managed));
  if (!stand_in()) return;  // newer drivers have other forms of these entry points
  app().call("cuMemPrefetchAsync", managed.address(), std::size_t{4096}, -1, static_cast<void*>(nullptr));
  EXPECT_FALSE(moved(managed));
  app().call("cuMemPrefetchAsync", managed.address(), std::size_t{4096}, 0, static_cast<void*>(nullptr));
  EXPECT_TRUE(moved(managed));
}

}  // namespace
}  // namespace bestride::cuda
