// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/staging.hpp"

#include "base/message.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

std::shared_ptr<StagingBuffer> StagingBuffer::make(const cuda::DevicePtr& device, std::int64_t bytes,
                                                   bool aware) noexcept try {
  auto staging_buffer = std::make_shared<StagingBuffer>();
  if (device) {
    Result<cuda::Buffer> buffer = aware ? device->scratch(bytes) : device->pinned(bytes);
    if (buffer) {
      staging_buffer->buffer_ = std::move(*buffer);
      staging_buffer->on_device_ = aware;
      return staging_buffer;
    }
    warn_once("gpu.memory", "%s: messages in device memory go through ordinary host memory, block by block",
              buffer.error().text.c_str());
  }
  staging_buffer->lease_ = BufferLease(runtime().pool, bytes);
  return staging_buffer->lease_ ? staging_buffer : nullptr;
} catch (...) {
  return nullptr;
}

std::shared_ptr<StagingBuffer> StagingBuffer::of(std::byte* theirs, bool on_device) noexcept try {
  auto staging_buffer = std::make_shared<StagingBuffer>();
  staging_buffer->external_ = theirs;
  staging_buffer->on_device_ = on_device;
  return staging_buffer;
} catch (...) {
  return nullptr;
}

Result<StagingPtr> Staging::make(const BufferLocation& location, void* user, MPI_Comm comm, TransferPurpose purpose,
                                 std::shared_ptr<StagingBuffer> staging_buffer, std::int64_t at) noexcept try {
  auto staging = std::make_shared<Staging>(location, user, comm);
  if (location.memory.kind != cuda::MemoryKind::mixed) {
    Result<cuda::DevicePtr> device = cuda::Device::of(location.memory);
    if (!device) return device.error();
    staging->device_ = std::move(*device);
    // Without a device layout (no memory for its lists, or too irregular) the message is moved block by block.
    if (Result<cuda::DeviceLayoutPtr> uploaded = staging->device_->device_layout(location.layout))
      staging->device_layout_ = std::move(*uploaded);
  }
  if (staging->device_layout_)
    staging->choice_ = choose_transfer(*staging->device_layout_, *staging->device_, purpose,
                                       staging_buffer ? staging_buffer->on_device() : gpu_aware());
  if (!staging_buffer)
    staging_buffer = StagingBuffer::make(staging->device_, location.layout->size(),
                                         staging->choice_.method == cuda::TransferMethod::device);
  if (!staging_buffer) return Error{"no memory for a message of " + std::to_string(location.layout->size()) + " bytes"};
  staging->packed_ = staging_buffer->data() + at;
  staging->staging_buffer_ = std::move(staging_buffer);
  return staging;
} catch (...) {
  return Error{"out of memory"};
}

Result<StagingPtr> Staging::make_on_host(const BufferLocation& location, void* user, MPI_Comm comm,
                                         CallKind kind) noexcept {
  Result<cuda::DevicePtr> device = location.memory.kind == cuda::MemoryKind::mixed
                                       ? Result<cuda::DevicePtr>(cuda::DevicePtr())
                                       : cuda::Device::of(location.memory);
  if (!device) return device.error();
  std::shared_ptr<StagingBuffer> staging_buffer = StagingBuffer::make(*device, location.layout->size(), false);
  if (!staging_buffer) return Error{"no memory for a message of " + std::to_string(location.layout->size()) + " bytes"};
  return make(location, user, comm, {kind, Distance::node}, std::move(staging_buffer));
}

}  // namespace bestride::inline interpose
