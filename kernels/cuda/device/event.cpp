// SPDX-License-Identifier: Apache-2.0
// Making a device's context current; events.
#include <utility>

#include "kernels/cuda/device/device.hpp"

namespace bestride::cuda {

Current::Current(Device& device) noexcept : device_(device), pushed_(false) {
  if (!device.alive()) return;
  const Code code = device.driver().cuCtxPushCurrent(device.context());
  pushed_ = code == code::success;
  if (!pushed_) device_.lose("cuCtxPushCurrent", code);
}

Current::~Current() {
  ContextHandle popped = nullptr;
  if (pushed_) device_.driver().cuCtxPopCurrent(&popped);
}

Event::Event(Event&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}
Event::~Event() {
  if (handle_) device_->give_back(handle_);
}

void Device::give_back(EventHandle event) noexcept try {
  const std::lock_guard lock(mutex_);
  idle_events_.push_back(event);
} catch (...) {
  // No memory to store the event: it is abandoned to the context.
}

Result<Event> Device::record(StreamHandle stream) noexcept {
  const Current current(*this);
  if (!current) return gone();
  EventHandle handle = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_events_.empty()) {
      handle = idle_events_.back();
      idle_events_.pop_back();
    }
  }
  if (!handle) {
    const Result<Done> made = check("cuEventCreate", driver_.cuEventCreate(&handle, event_disable_timing));
    if (!made) return made.error();
  }
  Event event(shared_from_this(), handle);
  const Result<Done> recorded = check("cuEventRecord", driver_.cuEventRecord(handle, stream));
  if (!recorded) return recorded.error();
  return event;
}

Result<bool> Device::finished(const Event& event) noexcept {
  const Current current(*this);
  if (!current) return gone();
  const Code code = driver_.cuEventQuery(event.handle());
  if (code == code::not_ready) return false;
  const Result<Done> done = check("cuEventQuery", code);
  if (!done) return done.error();
  return true;
}

}  // namespace bestride::cuda
