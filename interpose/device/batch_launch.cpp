// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/batch_launch.hpp"

#include <memory>
#include <vector>

#include "base/message.hpp"
#include "interpose/device/graph_cache.hpp"
#include "kernels/cuda/transfer/flow.hpp"

namespace bestride::inline interpose {
namespace {

using cuda::Address;
using cuda::CopyKind;
using cuda::Done;
using cuda::TransferMethod;

/// The work of one call on one device. One stream runs the copies to the device, the launch and the copies from the
/// device. Pipelined parts follow, on all streams (kernels/cuda/transfer/flow.hpp).
class Launch {
 public:
  explicit Launch(const cuda::DevicePtr& device) : device_(device), current_(*device), stream_(device->stream()) {}

  Result<Done> run(std::span<TransferPart* const> parts) {
    if (!current_) return device_->gone();
    Result<Done> ok = device_->order(stream_);
    for (const TransferPart* part : parts)
      if (ok) ok = take(*part, parts.size() > 1);
    if (ok && items_.operations() > 0) ok = enqueue();
    for (const TransferPart* part : pipelined_)
      if (ok) ok = pipeline(*part);
    return ok ? wait() : ok;
  }

  /// After a failure: waits until nothing is in flight, unless the device is lost.
  void drain() noexcept {
    if (!current_ || !device_->alive()) return;
    device_->driver().cuStreamSynchronize(stream_);
    flows_.clear();  // each flow waits for its own work
  }

 private:
  static Address packed_address(const TransferPart& part) {
    return reinterpret_cast<Address>(part.staging->packed()) + static_cast<Address>(part.first);
  }

  Result<Done> take(const TransferPart& part, bool of_many) {
    const Staging& staging = *part.staging;
    const bool packing = part.direction == Direction::pack;
    const std::int64_t bytes = part.last - part.first;
    if (bytes == 0) return Done{};
    items_.buffers.push_back(staging.memory().buffer_id);
    TransferChoice choice = staging.choice();
    if (staging.staging_buffer().on_device()) choice.method = TransferMethod::device;
    const Address packed = packed_address(part);
    if (staging.layout().contiguous()) {
      // A single contiguous message needs one copy, which is as fast as a launch. If there are several messages, those
      // with method oneshot or device share the launch.
      if (!of_many || (choice.method != TransferMethod::oneshot && choice.method != TransferMethod::device)) {
        const Address user =
            reinterpret_cast<Address>(staging.user()) + static_cast<Address>(staging.layout().offset() + part.first);
        const bool on_device = staging.staging_buffer().on_device();
        const CopyKind kind = on_device ? CopyKind::on_device : packing ? CopyKind::to_host : CopyKind::to_device;
        (packing ? items_.after : items_.before)
            .push_back({packing ? user : packed, packing ? packed : user, bytes, kind});
        return Done{};
      }
    } else if (choice.method == TransferMethod::copy_engine && bytes == staging.size()) {
      if (const auto box = cuda::box_of(*staging.device_layout(), device_->max_pitch())) {
        items_.boxes.push_back({*box, staging.user_address(), packed, packing});
        return Done{};
      }
    } else if (choice.method == TransferMethod::pipelined && part.first == 0 && bytes > choice.chunk) {
      pipelined_.push_back(&part);
      return Done{};
    }
    Address address = packed;
    if (choice.method == TransferMethod::staged || choice.method == TransferMethod::pipelined) {
      Result<cuda::Buffer> scratch = device_->scratch(bytes);
      if (!scratch) return scratch.error();
      address = scratch->address();
      scratch_.push_back(std::move(*scratch));
      if (packing)
        items_.after.push_back({address, packed, bytes, CopyKind::to_host});
      else
        items_.before.push_back({packed, address, bytes, CopyKind::to_device});
    }
    const std::int64_t bulk_from = choice.method == TransferMethod::oneshot ? 0 : bulk_from_of(part.direction);
    items_.kernels.push_back(
        {staging.device_layout(), staging.user_address(), address, part.direction, part.first, part.last, bulk_from});
    return Done{};
  }

  std::int64_t bulk_from_of(Direction direction) const noexcept { return device_costs(*device_).bulk_from(direction); }

  Result<Done> enqueue() {
    auto found = find_or_make_graph(device_, std::move(items_));
    if (!found) return found.error();
    sequence_ = std::move(*found);
    return sequence_->enqueue(stream_);
  }

  /// Pipelines chunks over the device's streams: one chunk is packed while another is copied.
  Result<Done> pipeline(const TransferPart& part) {
    const Staging& staging = *part.staging;
    cuda::TransferOptions options{.method = TransferMethod::pipelined, .chunk = staging.choice().chunk};
    if (options.kernel.bulk_from == 0) options.kernel.bulk_from = bulk_from_of(part.direction);
    auto flow =
        std::make_unique<cuda::Flow>(device_, staging.device_layout(), staging.user_address(), part.direction, options);
    if (const Result<Done> ready = flow->prepare(staging.packed()); !ready) return ready;
    flows_.push_back(std::move(flow));
    return flows_.back()->allow(part.last, true);
  }

  Result<Done> wait() {
    Result<Done> ok = wait_for(stream_);
    for (bool pending = !flows_.empty(); ok && pending;) {
      pending = false;
      for (const auto& flow : flows_) {
        const cuda::Progress progress = flow->poll();
        if (progress == cuda::Progress::failed) ok = flow->error();
        pending = pending || progress == cuda::Progress::pending;
      }
    }
    return ok;
  }

  /// Waits for an event instead of the stream, so that it does not wait for later work of other threads.
  Result<Done> wait_for(cuda::StreamHandle stream) {
    Result<cuda::Event> event = device_->record(stream);
    if (!event) return event.error();
    return device_->check("cuEventSynchronize", device_->driver().cuEventSynchronize(event->handle()));
  }

  const cuda::DevicePtr device_;
  const cuda::Current current_;
  const cuda::StreamHandle stream_;
  cuda::SequenceItems items_;
  std::vector<const TransferPart*> pipelined_;
  std::vector<std::unique_ptr<cuda::Flow>> flows_;
  std::vector<cuda::Buffer> scratch_;
  std::shared_ptr<cuda::Sequence> sequence_;
};

}  // namespace

bool launch_all(const cuda::DevicePtr& device, std::span<TransferPart* const> parts) noexcept try {
  Launch launch(device);
  Result<Done> ok = Done{};
  try {
    ok = launch.run(parts);
  } catch (...) {
    ok = Error{"out of memory"};
  }
  if (ok) return true;
  launch.drain();
  // If the device is lost, the block-by-block copies fail, too, and that failure is reported there.
  if (device->alive())
    warn_once("gpu.launch", "%s: messages in device memory are copied block by block", ok.error().text.c_str());
  return false;
} catch (...) {
  return false;
}

}  // namespace bestride::inline interpose
