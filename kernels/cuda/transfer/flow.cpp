// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/flow.hpp"

#include <algorithm>

namespace bestride::cuda {
namespace {

/// Chunks begin at multiples of this, so that chunk boundaries never reduce the kernels' word size.
constexpr std::int64_t chunk_step = 256;

std::int64_t chunk_of(const TransferOptions& options, std::int64_t size) {
  if (options.method != TransferMethod::pipelined) return size;
  return (std::max<std::int64_t>(options.chunk, 1) + chunk_step - 1) / chunk_step * chunk_step;
}

bool contiguous(const DeviceLayout& device_layout) { return device_layout.layout()->contiguous(); }

}  // namespace

Flow::Flow(DevicePtr device, DeviceLayoutPtr device_layout, Address user, Direction direction,
           const TransferOptions& options)
    : device_(std::move(device)),
      device_layout_(std::move(device_layout)),
      user_(user),
      direction_(direction),
      method_(options.method),
      kernel_options_(options.kernel),
      box_(box_of(*device_layout_, device_->max_pitch())),
      chunk_(chunk_of(options, device_layout_->size())) {
  for (StreamHandle& stream : streams_) stream = device_->stream();
}

Flow::~Flow() { wait(); }

void Flow::wait() noexcept {
  if (in_flight_.empty() && !failed_) return;
  const Current current(*device_);
  if (!current) return;
  for (const Chunk& chunk : in_flight_)
    if (chunk.event.handle()) device_->driver().cuEventSynchronize(chunk.event.handle());
  // Work that was enqueued before a call failed may have no event, so wait for its streams.
  if (failed_)
    for (int slot = 0; slot < slots; ++slot)
      if (used_[static_cast<std::size_t>(slot)])
        device_->driver().cuStreamSynchronize(streams_[static_cast<std::size_t>(slot)]);
}

Result<Done> Flow::prepare(void* host) noexcept {
  const std::int64_t size = device_layout_->size();
  if (size == 0) return Done{};
  if (method_ == TransferMethod::copy_engine && !box_) return Error{"the copy engine can't move this datatype"};
  host_address_ = reinterpret_cast<Address>(host);
  if (method_ != TransferMethod::device && !host) {
    Result<Buffer> own = device_->pinned(size);
    if (!own) return own.error();
    host_ = std::move(*own);
    host_address_ = host_.address();
  }
  const bool through_scratch =
      (method_ == TransferMethod::staged || method_ == TransferMethod::pipelined) && !contiguous(*device_layout_);
  if (method_ == TransferMethod::device || through_scratch) {
    const std::int64_t places = std::min<std::int64_t>(slots, (size + chunk_ - 1) / chunk_);
    Result<Buffer> scratch = device_->scratch(method_ == TransferMethod::device ? size : places * chunk_);
    if (!scratch) return scratch.error();
    scratch_ = std::move(*scratch);
  }
  return Done{};
}

Result<Done> Flow::allow(std::int64_t bytes, bool last) noexcept {
  allowed_ = std::max(allowed_, std::min(bytes, device_layout_->size()));
  last_ = last_ || last;
  if (failed_) return error_;
  Result<Done> ok = pump();
  fail(ok);
  return ok;
}

Progress Flow::poll() noexcept {
  if (failed_) return Progress::failed;
  while (!in_flight_.empty()) {
    const Result<bool> done = device_->finished(in_flight_.front().event);
    if (!done) {
      fail(done.error());
      return Progress::failed;
    }
    if (!*done) break;
    finished_ = in_flight_.front().end;
    in_flight_.pop_front();
  }
  if (fail(pump())) return Progress::failed;
  return last_ && issued_ == allowed_ && in_flight_.empty() ? Progress::done : Progress::pending;
}

bool Flow::fail(const Result<Done>& result) noexcept {
  if (result) return false;
  failed_ = true;
  error_ = result.error();
  return true;
}

Result<Done> Flow::pump() noexcept {
  while (issued_ < allowed_ && in_flight_.size() < max_in_flight) {
    const std::int64_t end = std::min(allowed_, issued_ + chunk_);
    if (end - issued_ < chunk_ && !last_) break;  // the rest of this chunk may still arrive
    const Result<Done> ok = issue(issued_, end);
    if (!ok) return ok;
    issued_ = end;
  }
  return Done{};
}

Result<Done> Flow::issue(std::int64_t first, std::int64_t last) noexcept try {
  // If the layout contains bytes twice, a later chunk must not overtake an earlier one.
  const bool one_stream = direction_ == Direction::unpack && device_layout_->overlaps();
  const int slot = one_stream ? 0 : chunks_issued_ % slots;
  const StreamHandle stream = streams_[static_cast<std::size_t>(slot)];
  const Current current(*device_);
  if (!current) return device_->gone();
  if (!used_[static_cast<std::size_t>(slot)]) {
    used_[static_cast<std::size_t>(slot)] = true;
    const Result<Done> ordered = device_->order(stream);
    if (!ordered) return ordered;
  }
  std::optional<Batch> batch;
  const Result<Done> enqueued = enqueue(first, last, slot, batch);
  if (!enqueued) return enqueued;
  Result<Event> event = device_->record(stream);
  if (!event) {
    // The kernel may still read memory that the batch owns.
    in_flight_.push_back({Event{}, last, std::move(batch)});
    return event.error();
  }
  in_flight_.push_back({std::move(*event), last, std::move(batch)});
  ++chunks_issued_;
  return Done{};
} catch (...) {
  return Error{"out of memory"};
}

Result<Done> Flow::enqueue(std::int64_t first, std::int64_t last, int slot, std::optional<Batch>& batch) noexcept {
  const StreamHandle stream = streams_[static_cast<std::size_t>(slot)];
  const bool packing = direction_ == Direction::pack;
  const Address host = host_address_ + static_cast<Address>(first);
  const std::int64_t bytes = last - first;
  const bool whole = bytes == device_layout_->size();

  if (contiguous(*device_layout_)) {
    const Address user = user_ + static_cast<Address>(device_layout_->layout()->offset() + first);
    const bool on_device = method_ == TransferMethod::device;
    const Address other = on_device ? scratch_.address() + static_cast<Address>(first) : host;
    return packing ? copy(user, other, bytes, !on_device, on_device, stream)
                   : copy(other, user, bytes, false, on_device, stream);
  }
  if (method_ == TransferMethod::copy_engine && whole)
    return device_->check("cuMemcpy2DAsync", copy_box(device_->driver(), *box_, user_, host, packing, stream));
  if (method_ == TransferMethod::device)
    return kernel(first, last, scratch_.address() + static_cast<Address>(first), stream, batch);
  // A part of a box is not a box, so a short message uses the kernel.
  if (method_ == TransferMethod::oneshot || method_ == TransferMethod::copy_engine)
    return kernel(first, last, host, stream, batch);

  const Address place =
      scratch_.address() + static_cast<Address>(slot * (method_ == TransferMethod::pipelined ? chunk_ : 0));
  if (packing) {
    const Result<Done> packed = kernel(first, last, place, stream, batch);
    return packed ? copy(place, host, bytes, true, false, stream) : packed;
  }
  const Result<Done> arrived = copy(host, place, bytes, false, false, stream);
  return arrived ? kernel(first, last, place, stream, batch) : arrived;
}

Result<Done> Flow::kernel(std::int64_t first, std::int64_t last, Address packed, StreamHandle stream,
                          std::optional<Batch>& batch) noexcept {
  const BatchItem item{device_layout_, user_, packed, direction_, first, last};
  Result<Batch> made = Batch::make(device_, {&item, 1}, kernel_options_);
  if (!made) return made.error();
  batch.emplace(std::move(*made));
  return batch->launch(stream);
}

Result<Done> Flow::copy(Address from, Address to, std::int64_t bytes, bool to_host, bool on_device,
                        StreamHandle stream) noexcept {
  const Driver& driver = device_->driver();
  const std::size_t size = static_cast<std::size_t>(bytes);
  if (on_device) return device_->check("cuMemcpyDtoDAsync", driver.cuMemcpyDtoDAsync(to, from, size, stream));
  if (to_host)
    return device_->check("cuMemcpyDtoHAsync",
                          driver.cuMemcpyDtoHAsync(reinterpret_cast<void*>(to), from, size, stream));
  return device_->check("cuMemcpyHtoDAsync",
                        driver.cuMemcpyHtoDAsync(to, reinterpret_cast<const void*>(from), size, stream));
}

}  // namespace bestride::cuda
