// SPDX-License-Identifier: Apache-2.0
// Device: buffers and their limits, device layouts kept and dropped, contexts destroyed at any time, no leaks.
#include "kernels/cuda/device/device.hpp"

#include "datatype/build.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/cuda/transfer/transfer.hpp"

namespace bestride::cuda {
namespace {

using namespace test;

class Devices : public OnDevice {};

LayoutPtr list_layout(std::int64_t step) {
  std::vector<std::int64_t> offsets, lengths;
  for (std::int64_t i = 0; i < 30; ++i) {
    offsets.push_back(i * i * step);
    lengths.push_back(4 + i % 3);
  }
  return intern(*make_blocks(offsets, lengths));
}

TEST_F(Devices, OnePerContext) {
  const DevicePtr first = device();
  EXPECT_EQ(first, device());
  EXPECT_EQ(first->ordinal(), 0);
  EXPECT_GE(first->multiprocessors(), 1);
  const ContextHandle other = app().make_context(0);
  EXPECT_NE(first, device());
  app().call("cuCtxDestroy_v2", other);
  app().call("cuCtxSetCurrent", context_);
  EXPECT_EQ(first, device());
}

TEST_F(Devices, BuffersAreReused) {
  const DevicePtr one = device();
  Address address = 0;
  {
    const Result<Buffer> buffer = one->pinned(100000);
    ASSERT_TRUE(buffer);
    EXPECT_GE(buffer->size(), 100000);
    EXPECT_EQ(buffer->address() % 256, 0u);
    address = buffer->address();
  }
  const Result<Buffer> again = one->pinned(99000);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->address(), address);
}

TEST_F(Devices, BuffersAreLimited) {
  const auto pool = std::make_shared<Pool>(Pool::Kind::scratch, 1 << 20, 4 << 20);
  const DevicePtr one = device();
  std::vector<Buffer> held;
  for (;;) {
    Result<Buffer> next = pool->take(*one, 1 << 20);
    if (!next) {
      EXPECT_NE(next.error().text.find("BESTRIDE_GPU_LIMIT"), std::string::npos);
      break;
    }
    held.push_back(std::move(*next));
  }
  EXPECT_EQ(held.size(), 4u);
  EXPECT_EQ(pool->in_use(), 4 << 20);
  held.clear();
  EXPECT_EQ(pool->in_use(), 0);
  EXPECT_EQ(pool->idle(), 1 << 20) << "more than the limit is kept";
  EXPECT_FALSE(pool->take(*one, 5 << 20));
  const Current current(*one);
  pool->trim(*one);
  EXPECT_EQ(pool->idle(), 0);
}

TEST_F(Devices, PlansAreCachedAndDropped) {
  const DevicePtr one = device();
  const LayoutPtr layout = list_layout(11);
  const DeviceLayoutPtr device_layout = *one->device_layout(layout);
  EXPECT_EQ(device_layout, *one->device_layout(layout));
  // Many types are created and freed: only the most recent ones stay.
  std::vector<std::weak_ptr<const Layout>> seen;
  for (std::int64_t i = 0; i < 300; ++i) {
    const LayoutPtr each = list_layout(100 + i);
    seen.push_back(each);
    ASSERT_TRUE(one->device_layout(each));
  }
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](const auto& one) { return !one.expired(); }), 64);
  EXPECT_EQ(device_layout, *one->device_layout(layout)) << "a device layout that is in use is found";
}

TEST_F(Devices, ContextDestroyedDuringATransfer) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 20000, 48));
  for (const TransferMethod method :
       {TransferMethod::oneshot, TransferMethod::staged, TransferMethod::pipelined, TransferMethod::device}) {
    const ContextHandle context = app().make_context(0);
    {
      const DevicePtr one = device();
      const TestMemory user(MemoryKind::device, span_of(*layout));
      const DeviceLayoutPtr device_layout = *one->device_layout(layout);
      auto packing = PackTransfer::start(one, device_layout, user.data(), {method, 4096, {}});
      ASSERT_TRUE(packing) << packing.error().text;
      ASSERT_EQ(app().call("cuCtxDestroy_v2", context), code::success);
      app().call("cuCtxSetCurrent", context_);
      EXPECT_EQ((*packing)->poll(), Progress::failed);
      EXPECT_NE((*packing)->error().text.find("gone"), std::string::npos);
      EXPECT_FALSE(one->alive());
      EXPECT_FALSE(PackTransfer::start(one, device_layout, user.data(), {method, 4096, {}}));
      EXPECT_FALSE(one->pinned(100));
      EXPECT_FALSE(one->device_layout(list_layout(7)));
    }
  }
  EXPECT_TRUE(device()->alive());
}

TEST_F(Devices, DriverShutDownDuringATransfer) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const ContextHandle context = app().make_context(0);
  {
    const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 2000, 48));
    const DevicePtr one = device();
    const TestMemory user(MemoryKind::device, span_of(*layout));
    auto packing = PackTransfer::start(one, *one->device_layout(layout), user.data(), {});
    ASSERT_TRUE(packing);
    app().shut_down(true);
    EXPECT_EQ((*packing)->poll(), Progress::failed);
    packing->reset();
    app().shut_down(false);
  }
  app().call("cuCtxDestroy_v2", context);
  app().call("cuCtxSetCurrent", context_);
}

TEST_F(Devices, LeavesNothingBehind) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  Device::release_all();
  const int before = app().live();
  {
    const LayoutPtr layout = list_layout(5);
    const DevicePtr one = device();
    const TestMemory user(MemoryKind::device, span_of(*layout));
    for (int i = 0; i < 50; ++i) {
      auto packing =
          PackTransfer::start(one, *one->device_layout(layout), user.data(), {TransferMethod::pipelined, 256, {}});
      ASSERT_TRUE(packing);
      while ((*packing)->poll() == Progress::pending) {
      }
    }
  }
  Device::release_all();
  EXPECT_EQ(app().live(), before);
}

TEST_F(Devices, KernelFaultAffectsOnlyItsContext) {
  if (!stand_in()) GTEST_SKIP() << "a spoilt context on hardware needs a new process";
  app().make_context(0);
  {
    const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 200, 48));
    const DevicePtr one = device();
    TestMemory user(MemoryKind::device, span_of(*layout));
    void* stale = user.data();
    user.release();
    app().hold(true);  // otherwise the transfer may fail while it is being started
    auto packing = PackTransfer::start(one, *one->device_layout(layout), stale,
                                       {TransferMethod::oneshot, 0, {}});  // nothing is allocated from here on
    ASSERT_TRUE(packing);
    app().hold(false);
    Progress progress = Progress::pending;
    while (progress == Progress::pending) progress = (*packing)->poll();
    EXPECT_EQ(progress, Progress::failed) << "memory used after it was freed";
    EXPECT_FALSE(one->alive());
  }
  app().call("cuCtxSetCurrent", context_);
  EXPECT_TRUE(device()->alive());
}

}  // namespace
}  // namespace bestride::cuda
