// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/staging.hpp"

#include "base/message.hpp"
#include "interpose/back/runtime.hpp"

namespace bestride {

std::shared_ptr<Room> Room::make(const cuda::DevicePtr& device, std::int64_t bytes, bool aware) noexcept try {
  auto room = std::make_shared<Room>();
  if (device) {
    Result<cuda::Buffer> buffer = aware ? device->scratch(bytes) : device->pinned(bytes);
    if (buffer) {
      room->buffer_ = std::move(*buffer);
      room->on_device_ = aware;
      return room;
    }
    say_once("gpu.room", "%s: messages in device memory go through ordinary host memory, block by block", buffer.error().text.c_str());
  }
  room->lease_ = Lease(runtime().pool, bytes);
  return room->lease_ ? room : nullptr;
} catch (...) {
  return nullptr;
}

std::shared_ptr<Room> Room::of(std::byte* theirs, bool on_device) noexcept try {
  auto room = std::make_shared<Room>();
  room->theirs_ = theirs;
  room->on_device_ = on_device;
  return room;
} catch (...) {
  return nullptr;
}

Result<StagingPtr> Staging::make(const Place& place, void* user, MPI_Comm comm, Errand errand, std::shared_ptr<Room> room,
                                 std::int64_t at) noexcept try {
  auto staging = std::make_shared<Staging>(place, user, comm);
  if (place.memory.kind != cuda::MemoryKind::mixed) {
    Result<cuda::DevicePtr> device = cuda::Device::of(place.memory);
    if (!device) return device.error();
    staging->device_ = std::move(*device);
    // Without a plan (no memory for its lists, too irregular) there is still the way block by block.
    if (Result<cuda::PlanPtr> plan = staging->device_->plan(place.layout)) staging->plan_ = std::move(*plan);
  }
  if (staging->plan_) staging->way_ = transfer_way(*staging->plan_, *staging->device_, errand, room ? room->on_device() : gpu_aware());
  if (!room) room = Room::make(staging->device_, place.layout->size(), staging->way_.way == cuda::TransferWay::device);
  if (!room) return Error{"no memory for a message of " + std::to_string(place.layout->size()) + " bytes"};
  staging->packed_ = room->data() + at;
  staging->room_ = std::move(room);
  return staging;
} catch (...) {
  return Error{"out of memory"};
}

Result<StagingPtr> Staging::make_on_host(const Place& place, void* user, MPI_Comm comm, CallKind kind) noexcept {
  Result<cuda::DevicePtr> device =
      place.memory.kind == cuda::MemoryKind::mixed ? Result<cuda::DevicePtr>(cuda::DevicePtr()) : cuda::Device::of(place.memory);
  if (!device) return device.error();
  std::shared_ptr<Room> room = Room::make(*device, place.layout->size(), false);
  if (!room) return Error{"no memory for a message of " + std::to_string(place.layout->size()) + " bytes"};
  return make(place, user, comm, {kind, Distance::node}, std::move(room));
}

}  // namespace bestride
