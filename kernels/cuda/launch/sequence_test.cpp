// SPDX-License-Identifier: Apache-2.0
// A sequence moves the bytes that its items describe, as separate calls and as a graph; a graph is one driver call. A
// sequence that cannot become a graph is unchanged.
#include "kernels/cuda/launch/sequence.hpp"

#include "datatype/build.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/testing/test_application.hpp"

namespace bestride::cuda {
namespace {

using namespace test;

/// Rows packed by a kernel and as a box, each with a copy to the host after it or from the host before it.
class Sequences : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    device_ = device();
    device_layout_ = *device_->device_layout(layout_);
    user_ = std::make_unique<TestMemory>(MemoryKind::device, span_of(*layout_));
    for (auto* each : {&packed_, &box_, &back_}) *each = std::make_unique<TestMemory>(MemoryKind::device, size());
    host_ = std::make_unique<TestMemory>(MemoryKind::pinned, size());
    source_ = std::make_unique<TestMemory>(MemoryKind::pinned, size());
    content_ = noise(user_->size(), 3);
    user_->write(content_);
    arriving_ = noise(size(), 4);
    std::copy(arriving_.begin(), arriving_.end(), source_->data());
  }
  std::size_t size() const { return static_cast<std::size_t>(layout_->size()); }

  std::shared_ptr<Sequence> make() {
    SequenceItems items;
    items.boxes.push_back({*box_of(*device_layout_, device_->max_pitch()), user_->address(), box_->address(), true});
    items.before.push_back({source_->address(), back_->address(), layout_->size(), CopyKind::to_device});
    items.kernels.push_back({device_layout_, user_->address(), packed_->address()});
    items.after.push_back({packed_->address(), host_->address(), layout_->size(), CopyKind::to_host});
    EXPECT_EQ(items.operations(), 4);
    auto sequence = Sequence::make(device_, std::move(items), {});
    EXPECT_TRUE(sequence) << sequence.error().text;
    return *sequence;
  }
  void run_and_check(Sequence& sequence) {
    for (const auto* each : {&packed_, &box_, &back_}) (*each)->write(Bytes(size()));
    std::memset(host_->data(), 0, size());
    const StreamHandle stream = device_->stream(1);
    ASSERT_TRUE(sequence.enqueue(stream));
    const Current current(*device_);
    ASSERT_EQ(device_->driver().cuStreamSynchronize(stream), code::success);
    const Bytes expected = packed_by_reference(layout_, content_, 0, layout_->size());
    EXPECT_EQ(box_->read(), expected);
    EXPECT_EQ(packed_->read(), expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), host_->data()));
    EXPECT_EQ(back_->read(), arriving_);
  }

  const LayoutPtr layout_ = intern(*make_repeat(*make_block(0, 16), 60, 48));
  DevicePtr device_;
  DeviceLayoutPtr device_layout_;
  std::unique_ptr<TestMemory> user_, packed_, box_, back_, host_, source_;
  Bytes content_, arriving_;
};

TEST_F(Sequences, CallByCallAndAsAGraph) {
  const auto sequence = make();
  for (const bool graph : {false, true}) {
    if (graph) {
      ASSERT_TRUE(sequence->keep_as_graph());
    }
    for (int i = 0; i < 3; ++i) {
      app().fail("");
      run_and_check(*sequence);
      if (!stand_in()) continue;
      EXPECT_EQ(app().calls("cuGraphLaunch"), graph ? 1 : 0);
      EXPECT_EQ(app().calls("cuLaunchKernel"), graph ? 0 : 1);
      EXPECT_EQ(
          app().calls("cuMemcpyDtoHAsync_v2") + app().calls("cuMemcpyHtoDAsync_v2") + app().calls("cuMemcpy2DAsync_v2"),
          graph ? 0 : 3);
    }
  }
}

TEST_F(Sequences, WithoutAGraphCallsAreRepeated) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  for (const char* failing : {"cuStreamCreate:1:2", "cuStreamBeginCapture_v2:1:900", "cuLaunchKernel:1:1",
                              "cuStreamEndCapture:1:901", "cuGraphInstantiateWithFlags:1:2"}) {
    const auto sequence = make();
    const int live = app().live();
    app().fail(failing);
    EXPECT_FALSE(sequence->keep_as_graph()) << failing;
    app().fail("");
    EXPECT_EQ(app().live(), live) << failing;
    EXPECT_TRUE(sequence->keep_as_graph()) << "not tried again";
    run_and_check(*sequence);
    EXPECT_EQ(app().calls("cuGraphLaunch"), 0) << failing;
  }
}

TEST_F(Sequences, FallsBackIfAGraphCantBeLaunched) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const auto sequence = make();
  ASSERT_TRUE(sequence->keep_as_graph());
  app().fail("cuGraphLaunch:1:2");
  run_and_check(*sequence);
  run_and_check(*sequence);
  EXPECT_EQ(app().calls("cuGraphLaunch"), 1);
}

TEST_F(Sequences, LeaveNothingBehind) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const int live = app().live();
  ASSERT_TRUE(make()->keep_as_graph());
  EXPECT_EQ(app().live(), live);
}

TEST_F(Sequences, Empty) {
  const auto sequence = Sequence::make(device_, {}, {});
  ASSERT_TRUE(sequence);
  EXPECT_TRUE((*sequence)->keep_as_graph());
  EXPECT_TRUE((*sequence)->enqueue(device_->stream()));
}

}  // namespace
}  // namespace bestride::cuda
