// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/sequence.hpp"

namespace bestride::cuda {

Result<std::shared_ptr<Sequence>> Sequence::make(DevicePtr device, SequenceItems items,
                                                 const KernelOptions& options) noexcept try {
  std::shared_ptr<Sequence> sequence(new Sequence(std::move(device), std::move(items)));
  if (!sequence->items_.kernels.empty()) {
    Result<Batch> batch = Batch::make(sequence->device_, sequence->items_.kernels, options);
    if (!batch) return batch.error();
    sequence->batch_.emplace(std::move(*batch));
  }
  return sequence;
} catch (...) {
  return Error{"out of memory"};
}

Sequence::~Sequence() {
  if (!graph_) return;
  const Current current(*device_);
  if (current) drop_graph();
}

void Sequence::drop_graph() noexcept { device_->driver().cuGraphExecDestroy(std::exchange(graph_, nullptr)); }

Result<Done> Sequence::enqueue(StreamHandle stream) noexcept {
  const Current current(*device_);
  if (!current) return device_->gone();
  {
    const std::lock_guard lock(mutex_);
    if (graph_) {
      const Result<Done> launched = device_->check("cuGraphLaunch", device_->driver().cuGraphLaunch(graph_, stream));
      if (launched || !device_->alive()) return launched;
      drop_graph();
    }
  }
  return one_by_one(stream);
}

Result<Done> Sequence::one_by_one(StreamHandle stream) noexcept {
  const Driver& driver = device_->driver();
  const auto copy = [&](const CopyItem& item) noexcept -> Result<Done> {
    const auto size = static_cast<std::size_t>(item.bytes);
    switch (item.kind) {
      case CopyKind::on_device:
        return device_->check("cuMemcpyDtoDAsync", driver.cuMemcpyDtoDAsync(item.to, item.from, size, stream));
      case CopyKind::to_host:
        return device_->check("cuMemcpyDtoHAsync",
                              driver.cuMemcpyDtoHAsync(reinterpret_cast<void*>(item.to), item.from, size, stream));
      case CopyKind::to_device: break;
    }
    return device_->check("cuMemcpyHtoDAsync",
                          driver.cuMemcpyHtoDAsync(item.to, reinterpret_cast<const void*>(item.from), size, stream));
  };
  Result<Done> ok = Done{};
  for (const BoxItem& item : items_.boxes)
    if (ok)
      ok =
          device_->check("cuMemcpy2DAsync", copy_box(driver, item.box, item.user, item.packed, item.to_packed, stream));
  for (const CopyItem& item : items_.before)
    if (ok) ok = copy(item);
  if (ok && batch_) ok = batch_->launch(stream);
  for (const CopyItem& item : items_.after)
    if (ok) ok = copy(item);
  return ok;
}

Result<Done> Sequence::keep_as_graph() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(tried_, true) || items_.operations() == 0) return Done{};
  }
  const Current current(*device_);
  if (!current) return device_->gone();
  const Driver& driver = device_->driver();
  // A separate stream for the capture: work that other threads enqueue on a shared stream would become part of the
  // graph.
  StreamHandle stream = nullptr;
  GraphHandle graph = nullptr;
  Result<Done> ok = device_->check("cuStreamCreate", driver.cuStreamCreate(&stream, stream_non_blocking));
  if (!ok) return ok;
  ok = device_->check("cuStreamBeginCapture", driver.cuStreamBeginCapture(stream, stream_capture_thread_local));
  if (ok) {
    ok = one_by_one(stream);
    const Result<Done> ended = device_->check("cuStreamEndCapture", driver.cuStreamEndCapture(stream, &graph));
    if (ok) ok = ended;
  }
  GraphExecHandle exec = nullptr;
  if (ok) ok = device_->check("cuGraphInstantiateWithFlags", driver.cuGraphInstantiateWithFlags(&exec, graph, 0));
  if (graph) driver.cuGraphDestroy(graph);
  driver.cuStreamDestroy(stream);
  const std::lock_guard lock(mutex_);
  if (ok) graph_ = exec;
  return ok;
}

}  // namespace bestride::cuda
