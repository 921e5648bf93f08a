// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/device/device_point.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/launch/sequence.hpp"
#include "kernels/cuda/transfer/transfer.hpp"
#include "perfmodel/calibrate/common/sampling.hpp"

namespace bestride::inline perfmodel {
namespace {

using cuda::Done;
using cuda::TransferMethod;
using Action = std::function<Result<Done>()>;

/// If batches take this many times their planned duration, the remaining samples are given up.
constexpr double patience = 10;
/// For chunks so small that their number, not their bytes, determines the time.
constexpr std::int64_t small_chunk = 4096;
constexpr int small_chunks = 64;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Result<double> time_once(const Action& action, int turns) {
  const double start = now();
  for (int i = 0; i < turns; ++i)
    if (const Result<Done> done = action(); !done) return done.error();
  return (now() - start) / turns;
}

/// Samples in which this thread was preempted are discarded, as in perfmodel/calibrate/messages/pair.cpp. But the GPU
/// continues during a preemption, so if all samples were disturbed, the shortest one is only slightly too long and is
/// used.
Result<double> sample(const Action& action, double limit) {
  const Result<double> warm = time_once(action, 1);
  if (!warm) return warm;
  const Result<double> first = time_once(action, 1);
  if (!first) return first;
  const SamplePlan plan = plan_samples(*first, limit);
  std::vector<double> good;
  double least = *first;
  const double start = now();
  for (int batch = 0; batch < max_batches && good.size() < enough_samples && now() - start < patience * limit; ++batch)
    for (int round = 0; round < plan.rounds && good.size() < max_rounds; ++round) {
      const long before = preemptions();
      const Result<double> seconds = time_once(action, plan.turns);
      if (!seconds) return seconds;
      least = std::min(least, *seconds);
      if (preemptions() == before) good.push_back(*seconds);
    }
  return good.empty() ? least : lower_quartile(std::move(good));
}

template <class Transfer>
Result<Done> finish(Transfer& transfer) {
  for (;;) switch (transfer.poll()) {
      case cuda::Progress::pending: continue;
      case cuda::Progress::done: return Done{};
      case cuda::Progress::failed: return transfer.error();
    }
}

Action transfer(const cuda::DevicePtr& device, const cuda::DeviceLayoutPtr& plan, cuda::Address user,
                Direction direction, const cuda::TransferOptions& options) {
  void* const memory = reinterpret_cast<void*>(user);
  if (direction == Direction::pack)
    return [=]() -> Result<Done> {
      const auto started = cuda::PackTransfer::start(device, plan, memory, options);
      return started ? finish(**started) : Result<Done>(started.error());
    };
  return [=]() -> Result<Done> {
    const auto prepared = cuda::UnpackTransfer::prepare(device, plan, memory, options);
    if (!prepared) return prepared.error();
    const Result<Done> delivered = (*prepared)->deliver(plan->size(), true);
    return delivered ? finish(**prepared) : delivered;
  };
}

/// Waits until all work now in the stream is complete.
Result<Done> synchronize(cuda::Device& device, cuda::StreamHandle stream) {
  const Result<cuda::Event> event = device.record(stream);
  if (!event) return event.error();
  for (;;) {
    const Result<bool> done = device.finished(*event);
    if (!done) return done.error();
    if (*done) return Done{};
  }
}

bool repeats(DeviceFloor floor) { return floor >= DeviceFloor::again; }

/// A sequence that is kept and enqueued repeatedly.
Result<Action> repeat(const cuda::DevicePtr& device, const cuda::DeviceLayoutPtr& plan, cuda::Address user,
                      DeviceFloor floor) {
  const bool many = floor == DeviceFloor::again_many || floor == DeviceFloor::graph_many;
  const std::int64_t size = plan->size();
  Result<cuda::Buffer> packed = device->scratch(size), host = device->pinned(size);
  if (!packed) return packed.error();
  if (!host) return host.error();
  cuda::SequenceItems items;
  items.kernels.push_back({plan, user, packed->address()});
  for (int i = 0; many && i < many_copies; ++i)
    items.after.push_back({packed->address(), host->address(), size, cuda::CopyKind::to_host});
  const auto sequence = cuda::Sequence::make(device, std::move(items), {});
  if (!sequence) return sequence.error();
  if (floor == DeviceFloor::graph || floor == DeviceFloor::graph_many)
    if (const Result<Done> kept = (*sequence)->keep_as_graph(); !kept) return kept.error();
  const auto memory = std::make_shared<std::array<cuda::Buffer, 2>>(std::array{std::move(*packed), std::move(*host)});
  return Action([device, memory, kept = *sequence]() -> Result<Done> {
    const cuda::StreamHandle stream = device->stream(0);
    const Result<Done> enqueued = kept->enqueue(stream);
    return enqueued ? synchronize(*device, stream) : enqueued;
  });
}

TransferMethod method_of(DeviceWork work) {
  return work == DeviceWork::oneshot ? TransferMethod::oneshot
         : work == DeviceWork::copy  ? TransferMethod::copy_engine
                                     : TransferMethod::device;
}

/// The data for measuring a floor: bytes in blocks that need a kernel.
DevicePoint shape_of(DeviceFloor floor) {
  DevicePoint point{DevicePoint::Kind::grid, floor, {}, 0, 1, 0, {}};  // 64 B in blocks of 8
  if (floor == DeviceFloor::chunk) {
    point.bytes_index = 6;
    point.block_index = 4;
    static_assert(bytes_at(6) == small_chunks * small_chunk);
  }
  return point;
}

}  // namespace

DeviceMeasurer::~DeviceMeasurer() {
  if (user_ != 0) device_->driver().cuMemFree(user_);
}

Result<cuda::Address> DeviceMeasurer::user(std::int64_t bytes) {
  if (bytes <= user_bytes_) return user_;
  if (user_ != 0) device_->driver().cuMemFree(user_);
  user_bytes_ = 0;
  const cuda::Code code = device_->driver().cuMemAlloc(&user_, static_cast<std::size_t>(bytes));
  if (code != cuda::code::success) {
    user_ = 0;
    return device_->driver().error("cuMemAlloc", code);
  }
  user_bytes_ = bytes;
  return user_;
}

Result<double> DeviceMeasurer::measure(const DevicePoint& point) {
  const bool is_floor = point.kind == DevicePoint::Kind::floor;
  if (is_floor && point.floor == DeviceFloor::sync)
    return sample([&] { return synchronize(*device_, device_->stream(0)); }, limit_);
  const Result<cuda::DeviceLayoutPtr> plan =
      device_->device_layout(layout_of(is_floor ? shape_of(point.floor) : point));
  if (!plan) return plan.error();
  const Result<cuda::Address> memory = user((*plan)->layout()->high());
  if (!memory) return memory.error();
  if (is_floor && repeats(point.floor)) {
    const Result<Action> action = repeat(device_, *plan, *memory, point.floor);
    return action ? sample(*action, limit_) : Result<double>(action.error());
  }
  cuda::TransferOptions options;
  if (point.kind == DevicePoint::Kind::grid && point.key.work == DeviceWork::bulk)
    options.kernel.kernel = cuda::GpuKernel::bulk;
  if (point.kind == DevicePoint::Kind::grid)
    options.method = method_of(point.key.work);
  else if (is_floor)
    options.method = point.floor == DeviceFloor::chunk ? TransferMethod::pipelined : TransferMethod::device;
  options.chunk = small_chunk;
  const Result<double> seconds = sample(transfer(device_, *plan, *memory, point.key.direction, options), limit_);
  if (!seconds || !is_floor || point.floor != DeviceFloor::chunk) return seconds;
  return *seconds / small_chunks;
}

}  // namespace bestride::inline perfmodel
