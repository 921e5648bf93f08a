// SPDX-License-Identifier: Apache-2.0
// Messages to and from packed buffers: every transfer method, whole and short messages, in pieces, on two devices;
// nothing waits.
#include "kernels/cuda/transfer/transfer.hpp"

#include <algorithm>
#include <thread>

#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/test_trees.hpp"

namespace bestride::cuda {
namespace {

using namespace test;
using bestride::test::Trees;

constexpr TransferMethod all_methods[] = {TransferMethod::oneshot, TransferMethod::staged, TransferMethod::pipelined,
                                          TransferMethod::copy_engine, TransferMethod::device};

template <class Transfer>
Progress run(Transfer& transfer) {
  Progress progress = transfer.poll();
  while (progress == Progress::pending) progress = transfer.poll();
  return progress;
}

class Transfers : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) device_ = device();
  }
  /// data() of a transfer; device memory for the method `device`.
  Bytes content(const void* data, std::int64_t size, TransferMethod method) const {
    Bytes bytes(static_cast<std::size_t>(size));
    if (method == TransferMethod::device)
      EXPECT_EQ(app().call("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), reinterpret_cast<Address>(data),
                           bytes.size()),
                code::success);
    else
      std::copy_n(static_cast<const unsigned char*>(data), bytes.size(), bytes.begin());
    return bytes;
  }
  void fill(void* data, const Bytes& bytes, std::size_t from, std::size_t to, TransferMethod method) const {
    if (from == to) return;
    if (method == TransferMethod::device) {
      EXPECT_EQ(app().call("cuMemcpyHtoD_v2", reinterpret_cast<Address>(data) + from,
                           static_cast<const void*>(bytes.data() + from), to - from),
                code::success);
      app().call("cuCtxSynchronize");
    } else {
      std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(to),
                static_cast<unsigned char*>(data) + from);
    }
  }

  void check(const LayoutPtr& layout, const TransferOptions& options, Trees& draw) {
    SCOPED_TRACE(layout->text() + " " + name(options.method));
    const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
    if (!can_move(*device_layout, options.method, *device_)) return;
    const Bytes content_before = noise(span_of(*layout), 1);
    const TestMemory user(MemoryKind::device, content_before.size());
    user.write(content_before);
    void* base = reinterpret_cast<void*>(base_for(*layout, user.address()));
    {
      auto packing = PackTransfer::start(device_, device_layout, base, options);
      ASSERT_TRUE(packing) << packing.error().text;
      ASSERT_EQ(run(**packing), Progress::done);
      ASSERT_EQ((*packing)->ready(), layout->size());
      ASSERT_EQ(content((*packing)->data(), layout->size(), options.method),
                packed_by_reference(layout, content_before, 0, layout->size()));
    }
    const Bytes sent = noise(static_cast<std::size_t>(layout->size()), 2);
    const std::int64_t arriving = draw.chance(0.5) ? layout->size() : draw.between(0, layout->size());
    auto unpacking = UnpackTransfer::prepare(device_, device_layout, base, options);
    ASSERT_TRUE(unpacking) << unpacking.error().text;
    for (std::int64_t arrived = 0; arrived < arriving;) {
      const std::int64_t next = draw.between(arrived + 1, arriving);
      fill((*unpacking)->data(), sent, static_cast<std::size_t>(arrived), static_cast<std::size_t>(next),
           options.method);
      ASSERT_TRUE((*unpacking)->deliver(next, false));
      (*unpacking)->poll();
      arrived = next;
    }
    ASSERT_EQ((*unpacking)->poll(), Progress::pending) << "done before the last delivery";
    ASSERT_TRUE((*unpacking)->deliver(arriving, true));
    ASSERT_EQ(run(**unpacking), Progress::done);
    ASSERT_EQ(user.read(),
              unpacked_by_reference(layout, content_before, Bytes(sent.begin(), sent.begin() + arriving), 0, arriving));
  }

  DevicePtr device_;
};

TEST_F(Transfers, EveryMethodEqualsTheReference) {
  Trees draw(21);
  for (int i = 0; i < 60; ++i) {
    const LayoutPtr layout = draw.draw(i % 6 == 0 ? 20000 : 2500);
    for (const TransferMethod method : all_methods) {
      check(layout, {method, draw.between(1, 900), {}}, draw);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Transfers, RectanglesAndBoxesUseTheCopyEngine) {
  Trees draw(22);
  const Built row = make_block(16, 24), rows = make_repeat(*row, 10, 40), box = make_repeat(*rows, 5, 40 * 13);
  for (const Built& built : {row, rows, box}) {
    const LayoutPtr layout = intern(*built);
    EXPECT_TRUE(can_move(**device_->device_layout(layout), TransferMethod::copy_engine, *device_));
    app().fail("");
    check(layout, {TransferMethod::copy_engine, 0, {}}, draw);
    if (stand_in() && !layout->contiguous()) {
      EXPECT_GT(app().calls("cuMemcpy2DAsync_v2") + app().calls("cuMemcpy3DAsync_v2"), 0);
    }
  }
  for (const Built& built : {make_repeat(*row, 10, -40), make_repeat(*rows, 5, 40 * 13 + 4), make_repeat(*rows, 5, 8)})
    EXPECT_FALSE(can_move(**device_->device_layout(intern(*built)), TransferMethod::copy_engine, *device_));
}

TEST_F(Transfers, PendingUntilTheDeviceIsDone) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 4000, 48));
  const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
  const TestMemory user(MemoryKind::device, span_of(*layout));
  for (const TransferMethod method : all_methods) {
    ASSERT_TRUE(device_->kernel("bestride_move_small"));
    app().hold(true);
    auto packing = PackTransfer::start(device_, device_layout, user.data(), {method, 4096, {}});
    ASSERT_TRUE(packing) << packing.error().text;
    for (int i = 0; i < 20; ++i) EXPECT_EQ((*packing)->poll(), Progress::pending);
    EXPECT_EQ((*packing)->ready(), 0);
    app().hold(false);
    EXPECT_EQ(run(**packing), Progress::done);
  }
}

TEST_F(Transfers, TheReadyPrefixGrowsByChunks) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 20000, 48));
  const Bytes content_before = noise(span_of(*layout), 4);
  const TestMemory user(MemoryKind::device, content_before.size());
  user.write(content_before);
  const Bytes expected = packed_by_reference(layout, content_before, 0, layout->size());
  auto packing =
      PackTransfer::start(device_, *device_->device_layout(layout), user.data(), {TransferMethod::pipelined, 4096, {}});
  ASSERT_TRUE(packing);
  std::int64_t seen = 0;
  while ((*packing)->poll() == Progress::pending) {
    const std::int64_t ready = (*packing)->ready();
    ASSERT_GE(ready, seen);
    ASSERT_TRUE(ready % 4096 == 0 || ready == layout->size());
    ASSERT_TRUE(std::equal(expected.begin() + seen, expected.begin() + ready,
                           static_cast<unsigned char*>((*packing)->data()) + seen));
    seen = ready;
  }
  EXPECT_EQ((*packing)->ready(), layout->size());
}

/// Every chunk writes the same bytes: the last chunk must win, whichever stream is faster.
TEST_F(Transfers, ChunksThatOverlapKeepTheirOrder) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 256), 40, 0));
  const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
  const Bytes sent = noise(static_cast<std::size_t>(layout->size()), 8);
  const TestMemory user(MemoryKind::device, span_of(*layout));
  for (int round = 0; round < 30; ++round) {
    user.write(Bytes(user.size()));
    auto unpacking = UnpackTransfer::prepare(device_, device_layout, user.data(), {TransferMethod::pipelined, 256, {}});
    ASSERT_TRUE(unpacking);
    fill((*unpacking)->data(), sent, 0, sent.size(), TransferMethod::pipelined);
    ASSERT_TRUE((*unpacking)->deliver(layout->size(), true));
    ASSERT_EQ(run(**unpacking), Progress::done);
    ASSERT_EQ(user.read(), Bytes(sent.end() - 256, sent.end()));
  }
}

TEST_F(Transfers, DestroyedWhileRunning) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 20000, 48));
  const Bytes content_before = noise(span_of(*layout), 5);
  const TestMemory user(MemoryKind::device, content_before.size());
  user.write(content_before);
  for (const TransferMethod method : all_methods) {
    ASSERT_TRUE(PackTransfer::start(device_, *device_->device_layout(layout), user.data(), {method, 4096, {}}));
    auto unpacking = UnpackTransfer::prepare(device_, *device_->device_layout(layout), user.data(), {method, 4096, {}});
    ASSERT_TRUE(unpacking);
    ASSERT_TRUE((*unpacking)->deliver(layout->size(), true));
  }
  app().call("cuCtxSynchronize");
  EXPECT_EQ(run(**PackTransfer::start(device_, *device_->device_layout(layout), user.data(), {})), Progress::done);
}

TEST_F(Transfers, FromManagedAndPinnedMemory) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 12), 300, 40));
  const Bytes content_before = noise(span_of(*layout), 6);
  for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned})
    for (const TransferMethod method : all_methods) {
      const TestMemory user(kind, content_before.size());
      std::copy(content_before.begin(), content_before.end(), user.data());
      auto packing = PackTransfer::start(device_, *device_->device_layout(layout), user.data(), {method, 1024, {}});
      ASSERT_TRUE(packing);
      ASSERT_EQ(run(**packing), Progress::done);
      EXPECT_EQ(content((*packing)->data(), layout->size(), method),
                packed_by_reference(layout, content_before, 0, layout->size()))
          << name(kind) << " " << name(method);
    }
}

TEST_F(Transfers, FromSeveralThreads) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      app().call("cuCtxSetCurrent", context_);
      Trees draw(100 + t);
      for (int i = 0; i < 12; ++i) {
        const LayoutPtr layout = draw.draw(1500);
        for (const TransferMethod method : all_methods) check(layout, {method, 512, {}}, draw);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Transfers, OnEveryDeviceWhateverIsCurrent) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 8), 500, 24));
  const Bytes content_before = noise(span_of(*layout), 7);
  std::vector<std::unique_ptr<TestMemory>> users;
  for (int i = 0; i < app().devices(); ++i) {
    app().use_device(i);
    users.push_back(std::make_unique<TestMemory>(MemoryKind::device, content_before.size()));
    users.back()->write(content_before);
  }
  // A context created late, next to the primary one.
  const ContextHandle late = app().make_context(0);
  users.push_back(std::make_unique<TestMemory>(MemoryKind::device, content_before.size()));
  users.back()->write(content_before);
  app().call("cuCtxSetCurrent", static_cast<ContextHandle>(nullptr));
  ContextHandle before = nullptr;
  app().call("cuCtxGetCurrent", &before);
  for (const auto& user : users) {
    const Result<DevicePtr> device = Device::of(where(user->data()));
    ASSERT_TRUE(device) << device.error().text;
    auto packing = PackTransfer::start(*device, *(*device)->device_layout(layout), user->data(), {});
    ASSERT_TRUE(packing) << packing.error().text;
    ASSERT_EQ(run(**packing), Progress::done);
    EXPECT_EQ(content((*packing)->data(), layout->size(), TransferMethod::staged),
              packed_by_reference(layout, content_before, 0, layout->size()));
    ContextHandle current = late;
    app().call("cuCtxGetCurrent", &current);
    EXPECT_EQ(current, before) << "left a context current";
  }
  users.clear();
  app().call("cuCtxDestroy_v2", late);
  app().call("cuCtxSetCurrent", context_);
}

}  // namespace
}  // namespace bestride::cuda
