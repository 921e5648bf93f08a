// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device: all state that this library keeps in one CUDA context: streams, events, the kernels' module, buffers and
// device layouts.
//
// There is one Device per context, not per GPU: memory that the application allocated in a context is accessed through
// that context. So several GPUs per rank, several contexts per GPU and contexts created late all work in the same way.
// Contexts belong to the application. If a context is destroyed or the driver shuts down, its Device is dead: every
// later call returns an Error, nothing is freed in the context, and nothing crashes.
//
// Order: a buffer given to MPI is ready when the call is made (required by MPI and by every GPU-aware MPI library), so
// the Device's own streams do not wait for any stream of the application. For programs that rely on the default stream
// see docs/gpu.md.
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "datatype/layout.hpp"
#include "kernels/cuda/device/pool.hpp"
#include "kernels/cuda/driver/memory.hpp"

namespace bestride::cuda {

class Device;
class DeviceLayout;
using DevicePtr = std::shared_ptr<Device>;
using DeviceLayoutPtr = std::shared_ptr<const DeviceLayout>;

/// Makes a device's context current for a scope, and restores the previous context at its end.
class Current {
 public:
  explicit Current(Device& device) noexcept;
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  explicit operator bool() const noexcept { return pushed_; }

 private:
  Device& device_;
  bool pushed_;
};

/// An event of a device, returned to the device on destruction. Empty, or recorded at most once between two queries.
class Event {
 public:
  Event() = default;
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();
  EventHandle handle() const noexcept { return handle_; }

 private:
  friend class Device;
  Event(DevicePtr device, EventHandle handle) noexcept : device_(std::move(device)), handle_(handle) {}
  DevicePtr device_;
  EventHandle handle_ = nullptr;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Number of own streams. Consecutive chunks of one message use different streams.
  static constexpr int stream_count = 4;

  /// The Device of the context that can access `memory`. Created at first use with its streams only; the module and
  /// buffers are created when needed. Error: no driver, host memory, no active context, or a destroyed context.
  static Result<DevicePtr> of(const Memory& memory);
  /// Drops every Device that has no other owner and frees its resources if its context is still alive. Called at the
  /// end of the MPI job.
  static void release_all() noexcept;
  ~Device();

  const Driver& driver() const noexcept { return driver_; }
  ContextHandle context() const noexcept { return context_; }
  DeviceOrdinal ordinal() const noexcept { return ordinal_; }
  int multiprocessors() const noexcept { return multiprocessors_; }
  int capability() const noexcept { return capability_; }         ///< 90 for 9.0
  std::int64_t max_pitch() const noexcept { return max_pitch_; }  ///< of 2-D copies, bytes
  /// False after any call reported that the context or the driver is lost. Never becomes true again.
  bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }
  /// An Error that says that the device is dead, and which call reported it first.
  Error gone() const noexcept;

  /// One of the own non-blocking streams, round robin.
  StreamHandle stream() noexcept {
    return streams_[next_stream_.fetch_add(1, std::memory_order_relaxed) % stream_count];
  }
  StreamHandle stream(int index) const noexcept { return streams_[static_cast<std::size_t>(index) % stream_count]; }

  /// Page-locked host memory that every context can access, from the pool: at least `size` bytes, 256-byte aligned.
  Result<Buffer> pinned(std::int64_t size) noexcept;
  /// Memory of this device, otherwise as pinned().
  Result<Buffer> scratch(std::int64_t size) noexcept;

  /// Records a new event after the work that is now in `stream`.
  Result<Event> record(StreamHandle stream) noexcept;
  /// True if all work before the event is done, false if not yet. Never blocks.
  Result<bool> finished(const Event& event) noexcept;

  /// With BESTRIDE_GPU_ORDER=default_stream: makes `stream` wait for the work that is now in the context's default
  /// stream. Otherwise does nothing.
  Result<Done> order(StreamHandle stream) noexcept;

  /// A kernel by name; loads the module at first use. Error: this build has no kernels, or the driver cannot run them.
  Result<FunctionHandle> kernel(const char* name) noexcept;

  /// The pieces of a layout, with its block lists in this device's memory. Created once and kept while it has an owner;
  /// the most recently used ones are kept longer. Uploading a list waits for that copy, once.
  Result<DeviceLayoutPtr> device_layout(const LayoutPtr& layout) noexcept;

  /// Copies `size` bytes of host memory to device memory and waits for this copy only. For tables that are written
  /// once.
  Result<Done> upload(Address target, const void* source, std::int64_t size) noexcept;

  /// Converts a driver code to a Result. A code that means "lost" marks the device dead.
  Result<Done> check(const char* call, Code code) noexcept;

  Device(const Driver& driver, ContextHandle context, std::uint64_t context_id);

 private:
  friend class Current;
  friend class Event;
  Result<Done> prepare() noexcept;
  void lose(const char* call, Code code) noexcept;
  void give_back(EventHandle event) noexcept;

  const Driver& driver_;
  const ContextHandle context_;
  const std::uint64_t context_id_;
  DeviceOrdinal ordinal_ = 0;
  int multiprocessors_ = 1;
  int capability_ = 0;
  std::int64_t max_pitch_ = 0;
  std::atomic<bool> alive_{true};
  mutable std::mutex lost_mutex_;
  std::string lost_cause_;  ///< guarded by lost_mutex_
  std::array<StreamHandle, stream_count> streams_{};
  StreamHandle upload_stream_ = nullptr;
  std::atomic<unsigned> next_stream_{0};
  std::mutex mutex_;  ///< guards all members below
  std::vector<EventHandle> idle_events_;
  ModuleHandle module_ = nullptr;
  std::unordered_map<std::string, FunctionHandle> functions_;
  std::shared_ptr<Pool> pinned_;
  std::shared_ptr<Pool> scratch_;
  std::unordered_map<const Layout*, std::weak_ptr<const DeviceLayout>> device_layouts_;
  std::list<DeviceLayoutPtr> recent_plans_;
};

}  // namespace bestride::cuda
