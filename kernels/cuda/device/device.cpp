// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/device.hpp"

#include <algorithm>
#include <cstring>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/driver/image.hpp"

namespace bestride::cuda {
namespace {

/// Number of device layouts kept without an owner: enough for the halo types of a program. Each holds its layout and,
/// rarely, a table in device memory.
constexpr std::size_t max_recent_plans = 64;

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, DevicePtr> devices;  ///< by context id
};
Registry& registry() {
  static Registry* const all = new Registry;  // never destroyed, because requests may be completed during exit
  return *all;
}

}  // namespace

Device::Device(const Driver& driver, ContextHandle context, std::uint64_t context_id)
    : driver_(driver), context_(context), context_id_(context_id) {
  constexpr std::int64_t most_idle = 128 << 20;
  const std::int64_t use = Settings::get().size("BESTRIDE_GPU_LIMIT"), idle = std::min(use, most_idle);
  pinned_ = std::make_shared<Pool>(Pool::Kind::pinned, idle, use);
  scratch_ = std::make_shared<Pool>(Pool::Kind::scratch, idle, use);
}

Result<Done> Device::prepare() noexcept {
  const Current current(*this);
  if (!current) return gone();
  const auto ask = [&](int which, int* value) { return driver_.cuDeviceGetAttribute(value, which, ordinal_); };
  int major = 0, minor = 0, pitch = 0;
  Result<Done> ok = check("cuCtxGetDevice", driver_.cuCtxGetDevice(&ordinal_));
  if (ok) ok = check("cuDeviceGetAttribute", ask(device_attribute::multiprocessors, &multiprocessors_));
  if (ok) ok = check("cuDeviceGetAttribute", ask(device_attribute::capability_major, &major));
  if (ok) ok = check("cuDeviceGetAttribute", ask(device_attribute::capability_minor, &minor));
  if (ok) ok = check("cuDeviceGetAttribute", ask(device_attribute::max_pitch, &pitch));
  capability_ = 10 * major + minor;
  max_pitch_ = pitch;
  for (StreamHandle& stream : streams_)
    if (ok) ok = check("cuStreamCreate", driver_.cuStreamCreate(&stream, stream_non_blocking));
  if (ok) ok = check("cuStreamCreate", driver_.cuStreamCreate(&upload_stream_, stream_non_blocking));
  return ok;
}

Result<DevicePtr> Device::of(const Memory& memory) try {
  const Driver* driver = Driver::get();
  if (!driver || !memory.context || memory.kind == MemoryKind::host || memory.kind == MemoryKind::mixed)
    return Error{"no CUDA context reaches this memory"};
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.devices.find(memory.context_id);
  if (found != all.devices.end()) {
    if (found->second->alive()) return found->second;
    return found->second->gone();
  }
  std::erase_if(all.devices, [](const auto& entry) { return !entry.second->alive(); });
  const DevicePtr device = std::make_shared<Device>(*driver, memory.context, memory.context_id);
  const Result<Done> ready = device->prepare();
  if (!ready) return ready.error();
  all.devices.emplace(memory.context_id, device);
  return device;
} catch (...) {
  return Error{"out of memory"};
}

void Device::release_all() noexcept {
  std::unordered_map<std::uint64_t, DevicePtr> devices;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    devices.swap(all.devices);
  }
  for (auto& [id, device] : devices) {
    std::list<DeviceLayoutPtr> device_layouts;
    {
      const std::lock_guard lock(device->mutex_);
      device_layouts.swap(device->recent_plans_);
    }
  }
}

Device::~Device() {
  recent_plans_.clear();
  {
    const Current current(*this);
    if (current) {
      for (const EventHandle event : idle_events_) driver_.cuEventDestroy(event);
      for (const StreamHandle stream : streams_)
        if (stream) driver_.cuStreamDestroy(stream);
      if (upload_stream_) driver_.cuStreamDestroy(upload_stream_);
      if (module_) driver_.cuModuleUnload(module_);
      pinned_->trim(*this);
      scratch_->trim(*this);
    }
  }
  pinned_->close();
  scratch_->close();
}

void Device::lose(const char* call, Code code) noexcept {
  if (!alive_.exchange(false)) return;
  pinned_->close();
  scratch_->close();
  try {
    const std::lock_guard lock(lost_mutex_);
    lost_cause_ = driver_.error(call, code).text;
  } catch (...) {
  }
}

Error Device::gone() const noexcept try {
  const std::lock_guard lock(lost_mutex_);
  return {"the CUDA context of device " + std::to_string(ordinal_) + " is gone" +
          (lost_cause_.empty() ? "" : " (" + lost_cause_ + ")")};
} catch (...) {
  return {"out of memory"};
}

Result<Done> Device::check(const char* call, Code code) noexcept {
  if (code == code::success) return Done{};
  if (is_context_lost(code)) lose(call, code);
  return driver_.error(call, code);
}

// ---- Resources

Result<Buffer> Device::pinned(std::int64_t size) noexcept { return pinned_->take(*this, size); }
Result<Buffer> Device::scratch(std::int64_t size) noexcept { return scratch_->take(*this, size); }

Result<Done> Device::upload(Address target, const void* source, std::int64_t size) noexcept {
  // Copy from page-locked memory: a copy from ordinary memory goes through the driver's own staging buffer and may wait
  // for other work.
  Result<Buffer> staging = pinned(size);
  if (!staging) return staging.error();
  std::memcpy(staging->data(), source, static_cast<std::size_t>(size));
  const Current current(*this);
  if (!current) return gone();
  Result<Done> ok =
      check("cuMemcpyHtoDAsync",
            driver_.cuMemcpyHtoDAsync(target, staging->data(), static_cast<std::size_t>(size), upload_stream_));
  if (!ok) return ok;
  return check("cuStreamSynchronize", driver_.cuStreamSynchronize(upload_stream_));
}

Result<Done> Device::order(StreamHandle stream) noexcept {
  static const bool wanted = Settings::get().text("BESTRIDE_GPU_ORDER") == "default_stream";
  if (!wanted) return Done{};
  const Result<Event> event = record(legacy_stream());
  if (!event) return event.error();
  const Current current(*this);
  if (!current) return gone();
  return check("cuStreamWaitEvent", driver_.cuStreamWaitEvent(stream, event->handle(), 0));
}

Result<FunctionHandle> Device::kernel(const char* name) noexcept try {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  const Current current(*this);
  if (!current) return gone();
  if (!module_) {
    const Result<Done> loaded = check("cuModuleLoadData", driver_.cuModuleLoadData(&module_, kernel_image()));
    if (!loaded) {
      module_ = nullptr;
      if (!has_kernels()) return Error{"this build has no GPU kernels: nvcc was not found when it was made"};
      warn_once("gpu.launch", "%s: messages in device memory are copied without them", loaded.error().text.c_str());
      return loaded.error();
    }
  }
  FunctionHandle function = nullptr;
  const Result<Done> found = check("cuModuleGetFunction", driver_.cuModuleGetFunction(&function, module_, name));
  if (!found) return found.error();
  functions_.emplace(name, function);
  return function;
} catch (...) {
  return Error{"out of memory"};
}

Result<DeviceLayoutPtr> Device::device_layout(const LayoutPtr& layout) noexcept try {
  DeviceLayoutPtr device_layout;
  {
    const std::lock_guard lock(mutex_);
    const auto found = device_layouts_.find(layout.get());
    if (found != device_layouts_.end()) device_layout = found->second.lock();
  }
  if (!device_layout) {
    Result<DeviceLayoutPtr> made = DeviceLayout::make(*this, layout);
    if (!made) return made;
    device_layout = *made;
  }
  DeviceLayoutPtr dropped;  // released outside the lock, because its buffer returns to a pool
  const std::lock_guard lock(mutex_);
  // A layout's address may be reused, so an entry whose device layout has expired is invalid.
  if (device_layouts_.size() > 4 * max_recent_plans)
    std::erase_if(device_layouts_, [](const auto& entry) { return entry.second.expired(); });
  device_layouts_[layout.get()] = device_layout;
  if (!recent_plans_.empty() && recent_plans_.front() == device_layout) return device_layout;
  recent_plans_.remove(device_layout);
  recent_plans_.push_front(device_layout);
  if (recent_plans_.size() > max_recent_plans) {
    dropped = std::move(recent_plans_.back());
    recent_plans_.pop_back();
  }
  return device_layout;
} catch (...) {
  return Error{"out of memory"};
}

}  // namespace bestride::cuda
