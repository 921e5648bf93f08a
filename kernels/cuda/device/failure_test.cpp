// SPDX-License-Identifier: Apache-2.0
// Forces every driver call that this folder makes to fail, at every occurrence in a run of all its functions. The
// result must be correct or an Error, never a crash, a hang or wrong bytes. Afterwards everything must work again.
#include <algorithm>

#include "datatype/build.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/launch/sequence.hpp"
#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/cuda/transfer/transfer.hpp"

namespace bestride::cuda {
namespace {

using namespace test;

constexpr const char* entries[] = {"cuPointerGetAttributes",
                                   "cuCtxGetId",
                                   "cuCtxGetDevice",
                                   "cuDeviceGetAttribute",
                                   "cuCtxPushCurrent_v2",
                                   "cuModuleLoadData",
                                   "cuModuleGetFunction",
                                   "cuLaunchKernel",
                                   "cuMemAlloc_v2",
                                   "cuMemHostAlloc",
                                   "cuMemcpyHtoDAsync_v2",
                                   "cuMemcpyDtoHAsync_v2",
                                   "cuMemcpyDtoDAsync_v2",
                                   "cuMemcpy2DAsync_v2",
                                   "cuStreamCreate",
                                   "cuStreamSynchronize",
                                   "cuEventCreate",
                                   "cuEventRecord",
                                   "cuEventQuery",
                                   "cuStreamBeginCapture_v2",
                                   "cuStreamEndCapture",
                                   "cuGraphInstantiateWithFlags",
                                   "cuGraphLaunch",
                                   "kernel",
                                   "copy"};
constexpr Code codes[] = {code::out_of_memory, code::unknown, code::context_is_destroyed, code::illegal_address};

/// Runs all functions of this folder once. Returns false if it ended in an Error, which is allowed; wrong bytes fail
/// the test.
class Scenario {
 public:
  Scenario(const TestMemory& user, const Bytes& content) : user_(user), content_(content) {}

  bool run() {
    const Memory memory = where(user_.data());
    if (memory.kind == MemoryKind::host) return false;
    const Result<DevicePtr> device = Device::of(memory);
    if (!device) return false;
    bool ok = true;
    for (const LayoutPtr& layout : {listed_, strided_, contiguous_})
      for (const TransferMethod method : {TransferMethod::oneshot, TransferMethod::staged, TransferMethod::pipelined,
                                          TransferMethod::copy_engine, TransferMethod::device})
        ok = transfer(*device, layout, method) && ok;
    return graph(*device) && ok;
  }

 private:
  bool transfer(const DevicePtr& device, const LayoutPtr& layout, TransferMethod method) {
    const Result<DeviceLayoutPtr> device_layout = device->device_layout(layout);
    if (!device_layout) return false;
    if (!can_move(**device_layout, method, *device)) return true;
    void* base = reinterpret_cast<void*>(base_for(*layout, user_.address()));
    auto packing = PackTransfer::start(device, *device_layout, base, {method, 512, {}});
    if (!packing) return false;
    Progress progress = Progress::pending;
    while (progress == Progress::pending) progress = (*packing)->poll();
    if (progress == Progress::failed) {
      EXPECT_FALSE((*packing)->error().text.empty());
      return false;
    }
    if (method != TransferMethod::device) {
      const Bytes expected = packed_by_reference(layout, content_, 0, layout->size());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), static_cast<unsigned char*>((*packing)->data())))
          << layout->text() << " " << name(method);
      auto unpacking = UnpackTransfer::prepare(device, *device_layout, base, {method, 512, {}});
      if (!unpacking) return false;
      std::copy(expected.begin(), expected.end(), static_cast<unsigned char*>((*unpacking)->data()));
      if (!(*unpacking)->deliver(layout->size(), true)) return false;
      for (progress = Progress::pending; progress == Progress::pending;) progress = (*unpacking)->poll();
    }
    return progress == Progress::done;
  }

  bool graph(const DevicePtr& device) {
    const Result<DeviceLayoutPtr> device_layout = device->device_layout(strided_);
    Result<Buffer> packed = device->scratch(strided_->size());
    if (!device_layout || !packed) return false;
    SequenceItems items;
    items.kernels.push_back({*device_layout, user_.address(), packed->address()});
    const auto sequence = Sequence::make(device, std::move(items), {});
    if (!sequence) return false;
    const bool kept = static_cast<bool>((*sequence)->keep_as_graph());
    const bool launched = static_cast<bool>((*sequence)->enqueue(device->stream(0)));
    const Current current(*device);
    const bool finished = current && device->driver().cuStreamSynchronize(device->stream(0)) == code::success;
    return kept && launched && finished;
  }

  static LayoutPtr listed() {
    std::vector<std::int64_t> offsets, lengths;
    for (std::int64_t i = 0; i < 40; ++i) {
      offsets.push_back(i * i * 5);
      lengths.push_back(3 + i % 2);
    }
    return intern(*make_blocks(offsets, lengths));
  }

  const TestMemory& user_;
  const Bytes& content_;
  const LayoutPtr listed_ = listed();
  const LayoutPtr strided_ = intern(*make_repeat(*make_block(0, 16), 150, 48));
  const LayoutPtr contiguous_ = intern(*make_block(8, 2000));
};

class Failures : public OnDevice {};

TEST_F(Failures, EveryCallAtEveryOccurrence) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const Bytes content = noise(10000, 1);
  int forced = 0;
  for (const char* entry : entries)
    for (const Code failure : codes) {
      bool reached = true;
      for (int call = 1; reached; call = call < 6 ? call + 1 : call * 2) {
        SCOPED_TRACE(std::string(entry) + " call " + std::to_string(call) + " code " + std::to_string(failure));
        Device::release_all();
        const ContextHandle context = app().make_context(0);
        {
          const TestMemory user(MemoryKind::device, content.size());
          user.write(content);
          Scenario scenario(user, content);
          app().fail((std::string(entry) + ":" + std::to_string(call) + ":" + std::to_string(failure)).c_str());
          const bool all = scenario.run();
          reached = app().calls(entry) >= call;
          forced += reached;
          // If a query fails, memory is taken for host memory. Some failures are recovered (a larger pool, no graph).
          if (!reached) {
            EXPECT_TRUE(all);
          }
          app().fail("");
        }
        app().call("cuCtxDestroy_v2", context);
        app().call("cuCtxSetCurrent", context_);
        if (HasFailure()) return;
      }
    }
  EXPECT_GT(forced, 300);
  const DevicePtr one = device();
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->alive());
}

}  // namespace
}  // namespace bestride::cuda
