// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/launch.hpp"

#include <memory>
#include <vector>

#include "base/message.hpp"
#include "interpose/back/gpu/batches.hpp"
#include "kernels/cuda/flow.hpp"
#include "kernels/cuda/geometry.hpp"

namespace bestride {
namespace {

using cuda::Address;
using cuda::Direction;
using cuda::Done;
using cuda::TransferWay;

/// Work of one call on one device. All on one stream: copies to the device, the launch, copies from the device; pipelined parts behind, on
/// all streams (kernels/cuda/flow.hpp).
class Launch {
 public:
  explicit Launch(const cuda::DevicePtr& device) : device_(device), current_(*device), stream_(device->stream()) {}

  Result<Done> run(std::span<Part* const> parts) {
    if (!current_) return Error{"the CUDA context is gone"};
    Result<Done> ok = device_->order(stream_);
    for (const Part* part : parts)
      if (ok) ok = take(*part, parts.size() > 1);
    for (const Copy& copy : before_)
      if (ok) ok = enqueue(copy, stream_);
    if (ok && !items_.empty()) ok = launch(items_, stream_);
    for (const Copy& copy : after_)
      if (ok) ok = enqueue(copy, stream_);
    for (const Part* part : pipelined_)
      if (ok) ok = pipeline(*part);
    return ok ? wait() : ok;
  }

  /// After a failure: until nothing is under way, unless the device is lost.
  void drain() noexcept {
    if (!current_ || !device_->alive()) return;
    device_->driver().cuStreamSynchronize(stream_);
    flows_.clear();  // each waits for its own
  }

 private:
  struct Copy {
    Address from, to;
    std::int64_t bytes;
    bool to_host, on_device;
  };

  static Address packed_address(const Part& part) { return reinterpret_cast<Address>(part.staging->packed()) + static_cast<Address>(part.first); }

  Result<Done> take(const Part& part, bool of_many) {
    const Staging& staging = *part.staging;
    const bool packing = part.direction == Direction::pack;
    const std::int64_t bytes = part.last - part.first;
    if (bytes == 0) return Done{};
    Way way = staging.way();
    if (staging.room().on_device()) way.way = TransferWay::device;
    const Address packed = packed_address(part);
    if (staging.layout().contiguous()) {
      // One copy is as good as one launch; of many, those that are short go with the others.
      if (!of_many || (way.way != TransferWay::oneshot && way.way != TransferWay::device)) {
        const Address user = reinterpret_cast<Address>(staging.user()) + static_cast<Address>(staging.layout().offset() + part.first);
        const bool on_device = staging.room().on_device();
        (packing ? after_ : before_).push_back({packing ? user : packed, packing ? packed : user, bytes, packing && !on_device, on_device});
        return Done{};
      }
    } else if (way.way == TransferWay::copy_engine && bytes == staging.size()) {
      if (const auto box = cuda::box_of(*staging.plan(), device_->max_pitch()))
        return device_->check("cuMemcpy2DAsync", cuda::copy_box(device_->driver(), *box, staging.user_address(), packed, packing, stream_));
    } else if (way.way == TransferWay::pipelined && part.first == 0 && bytes > way.chunk) {
      pipelined_.push_back(&part);
      return Done{};
    }
    Address place = packed;
    if (way.way == TransferWay::staged || way.way == TransferWay::pipelined) {
      Result<cuda::Buffer> scratch = device_->scratch(bytes);
      if (!scratch) return scratch.error();
      place = scratch->address();
      scratch_.push_back(std::move(*scratch));
      if (packing) after_.push_back({place, packed, bytes, true, false});
      else before_.push_back({packed, place, bytes, false, false});
    }
    items_.push_back({staging.plan(), staging.user_address(), place, part.direction, part.first, part.last});
    return Done{};
  }

  Result<Done> enqueue(const Copy& copy, cuda::StreamHandle stream) noexcept {
    const cuda::Driver& driver = device_->driver();
    const auto size = static_cast<std::size_t>(copy.bytes);
    if (copy.on_device) return device_->check("cuMemcpyDtoDAsync", driver.cuMemcpyDtoDAsync(copy.to, copy.from, size, stream));
    if (copy.to_host) return device_->check("cuMemcpyDtoHAsync", driver.cuMemcpyDtoHAsync(reinterpret_cast<void*>(copy.to), copy.from, size, stream));
    return device_->check("cuMemcpyHtoDAsync", driver.cuMemcpyHtoDAsync(copy.to, reinterpret_cast<const void*>(copy.from), size, stream));
  }

  Result<Done> launch(std::span<const cuda::BatchItem> items, cuda::StreamHandle stream) {
    auto batch = find_batch(device_, items);
    if (!batch) return batch.error();
    batches_.push_back(*batch);
    return batches_.back()->launch(stream);
  }

  /// In chunks over the device's streams: one is packed while another is copied.
  Result<Done> pipeline(const Part& part) {
    const Staging& staging = *part.staging;
    const cuda::TransferOptions options{.way = TransferWay::pipelined, .chunk = staging.way().chunk};
    auto flow = std::make_unique<cuda::Flow>(device_, staging.plan(), staging.user_address(), part.direction, options);
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

  /// An event, not the stream: other threads' work behind ours is not waited for.
  Result<Done> wait_for(cuda::StreamHandle stream) {
    Result<cuda::Event> event = device_->record(stream);
    if (!event) return event.error();
    return device_->check("cuEventSynchronize", device_->driver().cuEventSynchronize(event->handle()));
  }

  const cuda::DevicePtr device_;
  const cuda::Current current_;
  const cuda::StreamHandle stream_;
  std::vector<cuda::BatchItem> items_;
  std::vector<Copy> before_, after_;
  std::vector<const Part*> pipelined_;
  std::vector<std::unique_ptr<cuda::Flow>> flows_;
  std::vector<cuda::Buffer> scratch_;
  std::vector<std::shared_ptr<const cuda::Batch>> batches_;
};

}  // namespace

bool launch_all(const cuda::DevicePtr& device, std::span<Part* const> parts) noexcept try {
  Launch launch(device);
  Result<Done> ok = Done{};
  try {
    ok = launch.run(parts);
  } catch (...) {
    ok = Error{"out of memory"};
  }
  if (ok) return true;
  launch.drain();
  say_once("gpu.launch", "%s: messages in device memory are copied block by block", ok.error().text.c_str());
  return false;
} catch (...) {
  return false;
}

}  // namespace bestride
