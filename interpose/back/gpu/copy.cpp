// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/copy.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "datatype/build.hpp"
#include "interpose/back/runtime.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/transfer.hpp"
#include "kernels/packer.hpp"

namespace bestride {
namespace {

using cuda::Done;

/// Which way a message of this size takes.
cuda::TransferOptions options_for(std::int64_t bytes) {
  cuda::TransferOptions options;
  options.way = bytes <= (64 << 10) ? cuda::TransferWay::oneshot : bytes < (4 << 20) ? cuda::TransferWay::staged : cuda::TransferWay::pipelined;
  return options;
}

/// The packers this thread used last. May throw std::bad_alloc.
std::shared_ptr<const Packer> packer_for(const LayoutPtr& layout) {
  struct Kept {
    std::shared_ptr<const Packer> packers[8];
    unsigned next = 0;
  };
  thread_local Kept kept;
  for (const auto& packer : kept.packers)
    if (packer && packer->layout() == layout) return packer;
  return kept.packers[kept.next++ % 8] = std::make_shared<const Packer>(layout, runtime().options().packer);
}

/// Until a transfer is done or failed.
template <class Transfer>
Result<Done> wait_for(Transfer& transfer) noexcept {
  for (int looks = 0;; ++looks) {
    switch (transfer.poll()) {
      case cuda::Progress::done: return Done{};
      case cuda::Progress::failed: return transfer.error();
      case cuda::Progress::pending: break;
    }
    if (looks > 256) sched_yield();  // the GPU needs no core of ours, its driver's threads may
  }
}

/// Copies between device blocks and host memory; each enqueued, all waited for at the end.
class Copies {
 public:
  /// What is enqueued may still write to memory of the caller's: it is waited for, whatever happened.
  ~Copies() { (void)finish(); }
  Copies() = default;
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  Result<Done> add(const cuda::Memory& memory, char* user, char* host, std::int64_t bytes, bool to_host) {
    if (memory.kind != cuda::MemoryKind::device && memory.kind != cuda::MemoryKind::managed) {
      std::memcpy(to_host ? host : user, to_host ? user : host, static_cast<std::size_t>(bytes));
      return Done{};
    }
    if (Result<Done> ready = use(memory); !ready) return ready;
    cuda::Device& device = *used_.back();
    const cuda::Current current(device);
    if (!current) return device.check("cuCtxPushCurrent", cuda::code::invalid_context);
    const auto address = reinterpret_cast<cuda::Address>(user);
    const auto size = static_cast<std::size_t>(bytes);
    return to_host ? device.check("cuMemcpyDtoHAsync", device.driver().cuMemcpyDtoHAsync(host, address, size, device.stream(0)))
                   : device.check("cuMemcpyHtoDAsync", device.driver().cuMemcpyHtoDAsync(address, host, size, device.stream(0)));
  }
  Result<Done> finish() noexcept {
    Result<Done> all = Done{};
    for (const cuda::DevicePtr& device : used_) {
      const cuda::Current current(*device);
      if (!current) {
        all = device->check("cuCtxPushCurrent", cuda::code::invalid_context);
        continue;
      }
      if (Result<Done> done = device->check("cuStreamSynchronize", device->driver().cuStreamSynchronize(device->stream(0))); !done) all = done;
    }
    used_.clear();
    return all;
  }

 private:
  /// Puts the device of `memory` last.
  Result<Done> use(const cuda::Memory& memory) {
    if (!used_.empty() && used_.back()->context() == memory.context) return Done{};
    Result<cuda::DevicePtr> device = cuda::Device::of(memory);
    if (!device) return device.error();
    for (cuda::DevicePtr& each : used_)
      if (each == *device) {
        std::swap(each, used_.back());
        return Done{};
      }
    const cuda::Current current(**device);
    if (current)
      if (Result<Done> ordered = (*device)->order((*device)->stream(0)); !ordered) return ordered;
    used_.push_back(*device);
    return Done{};
  }
  std::vector<cuda::DevicePtr> used_;
};

/// Block by block.
Result<Done> copy_blocks(const Layout& layout, char* user, char* mirror, bool to_host) {
  Copies copies;
  Result<Done> result = Done{};
  cuda::Memory memory;
  const auto run = [&](std::int64_t offset, std::int64_t length) {
    while (length > 0) {
      const auto address = reinterpret_cast<cuda::Address>(user + offset);
      if (memory.size == 0 || address < memory.base || address - memory.base >= memory.size) memory = cuda::where(user + offset);
      std::int64_t here = length;
      if (memory.size != 0) here = std::min(length, static_cast<std::int64_t>(memory.base + memory.size - address));
      result = copies.add(memory, user + offset, mirror + offset, here, to_host);
      if (!result) return false;
      offset += here, length -= here;
    }
    return true;
  };
  for_each_block(*layout.root(), layout.offset(), run);
  if (Result<Done> finished = copies.finish(); !finished) return finished;
  return result;
}

Result<Done> pack(const cuda::DevicePtr& device, const LayoutPtr& layout, const void* user, void* mirror) {
  Result<cuda::PlanPtr> plan = device->plan(layout);
  if (!plan) return plan.error();
  const std::shared_ptr<const Packer> packer = packer_for(layout);
  auto transfer = cuda::PackTransfer::start(device, *plan, user, options_for(layout->size()));
  if (!transfer) return transfer.error();
  if (Result<Done> done = wait_for(**transfer); !done) return done;
  packer->unpack(mirror, (*transfer)->data());
  return Done{};
}

Result<Done> unpack(const cuda::DevicePtr& device, const LayoutPtr& layout, void* user, const void* mirror) {
  Result<cuda::PlanPtr> plan = device->plan(layout);
  if (!plan) return plan.error();
  const std::shared_ptr<const Packer> packer = packer_for(layout);
  auto transfer = cuda::UnpackTransfer::prepare(device, *plan, user, options_for(layout->size()));
  if (!transfer) return transfer.error();
  packer->pack((*transfer)->data(), mirror);
  if (Result<Done> started = (*transfer)->deliver(layout->size(), true); !started) return started;
  return wait_for(**transfer);
}

template <class ByKernel>
Result<Done> copy(const Place& place, char* user, char* mirror, bool to_host, ByKernel by_kernel) noexcept {
  try {
    if (!place.layout || !place.layout->root()) return Done{};
    if (place.memory.kind == cuda::MemoryKind::device && !place.memory.context)
      return Error{"the device memory is freed, or of a context that is gone"};
    const bool one_device = place.memory.kind == cuda::MemoryKind::device || place.memory.kind == cuda::MemoryKind::managed;
    if (one_device && !place.layout->contiguous()) {
      Result<cuda::DevicePtr> device = cuda::Device::of(place.memory);
      if (!device) return device.error();
      Result<Done> done = by_kernel(*device);
      if (done || !(*device)->alive()) return done;
    }
    return copy_blocks(*place.layout, user, mirror, to_host);
  } catch (...) {
    return Error{"out of memory"};
  }
}

}  // namespace

Result<Done> copy_to_host(const Place& place, const void* user, void* mirror) noexcept {
  return copy(place, static_cast<char*>(const_cast<void*>(user)), static_cast<char*>(mirror), true,
              [&](const cuda::DevicePtr& device) { return pack(device, place.layout, user, mirror); });
}

Result<Done> copy_to_device(const Place& place, void* user, const void* mirror) noexcept {
  return copy(place, static_cast<char*>(user), static_cast<char*>(const_cast<void*>(mirror)), false,
              [&](const cuda::DevicePtr& device) { return unpack(device, place.layout, user, mirror); });
}

}  // namespace bestride
