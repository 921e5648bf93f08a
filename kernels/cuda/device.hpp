// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device: everything this room keeps in one CUDA context: streams, events, the kernels' module, buffers, plans.
//
// One per context, not per GPU: memory of a context the application made is reached through that context, so several GPUs a
// rank, several contexts a GPU and contexts made late work alike. Contexts belong to the application; when one is destroyed or
// the driver shuts down, its Device is dead: every further call says so as an Error, nothing is freed in it, nothing crashes.
//
// Order: a buffer given to MPI is ready when the call is made (MPI's rule, and every GPU-aware MPI's), so own streams wait for
// none of the application's. See the room's README for programs that rely on the default stream.
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
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/pool.hpp"

namespace bestride::cuda {

class Device;
class Plan;
using DevicePtr = std::shared_ptr<Device>;
using PlanPtr = std::shared_ptr<const Plan>;

/// Makes a device's context current for a scope, and what was current before again at its end.
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

/// An event of a device, given back to it at the end of its life. Empty, or recorded at most once between two queries.
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
  /// Number of own streams: consecutive chunks of one message go to different ones.
  static constexpr int stream_count = 4;

  /// The Device of the context that reaches `memory`; made at first use (streams only; module and buffers come when needed).
  /// Error: no driver, host memory, no active context, or the context is gone.
  static Result<DevicePtr> of(const Memory& memory);
  /// Forgets every Device that nobody holds, freeing what lives in contexts that are still alive. At the end of the MPI job.
  static void release_all() noexcept;
  ~Device();

  const Driver& driver() const noexcept { return driver_; }
  ContextHandle context() const noexcept { return context_; }
  DeviceOrdinal ordinal() const noexcept { return ordinal_; }
  int multiprocessors() const noexcept { return multiprocessors_; }
  int capability() const noexcept { return capability_; }  ///< 90 for 9.0
  std::int64_t max_pitch() const noexcept { return max_pitch_; }  ///< of 2-D copies, bytes
  /// False once any call reported that the context or the driver is gone or spoilt. Never becomes true again.
  bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }
  /// That it is not, and which call said so first.
  Error gone() const noexcept;

  /// One of the own non-blocking streams, in turn.
  StreamHandle stream() noexcept { return streams_[next_stream_.fetch_add(1, std::memory_order_relaxed) % stream_count]; }
  StreamHandle stream(int index) const noexcept { return streams_[static_cast<std::size_t>(index) % stream_count]; }

  /// Page-locked host memory every context reaches; from the pool, at least `size` bytes, 256-byte aligned.
  Result<Buffer> pinned(std::int64_t size) noexcept;
  /// Memory of this device, likewise.
  Result<Buffer> scratch(std::int64_t size) noexcept;

  /// Records a fresh event behind what `stream` holds now.
  Result<Event> record(StreamHandle stream) noexcept;
  /// true: all before the event is done; false: not yet. Never blocks.
  Result<bool> finished(const Event& event) noexcept;

  /// With BESTRIDE_GPU_ORDER=default_stream: `stream` waits for what the context's default stream holds now. Else nothing.
  Result<Done> order(StreamHandle stream) noexcept;

  /// A kernel by name; loads the module at first use. Error: this build has no kernels, or the driver cannot run them.
  Result<FunctionHandle> kernel(const char* name) noexcept;

  /// The pieces of a layout, with its block lists in this device's memory. Made once and kept while somebody holds it; the most
  /// recently used ones are kept longer. Uploading a list waits for its own copy, once.
  Result<PlanPtr> plan(const LayoutPtr& layout) noexcept;

  /// Copies `size` bytes of host memory to device memory and waits for that copy alone. For tables written once.
  Result<Done> upload(Address target, const void* source, std::int64_t size) noexcept;

  /// Success, or the error as a Result; a code that means "gone" marks the device dead.
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
  std::string lost_by_;  ///< under lost_mutex_
  std::array<StreamHandle, stream_count> streams_{};
  StreamHandle upload_stream_ = nullptr;
  std::atomic<unsigned> next_stream_{0};
  std::mutex mutex_;  ///< of everything below
  std::vector<EventHandle> idle_events_;
  ModuleHandle module_ = nullptr;
  std::unordered_map<std::string, FunctionHandle> functions_;
  std::shared_ptr<Pool> pinned_;
  std::shared_ptr<Pool> scratch_;
  std::unordered_map<const Layout*, std::weak_ptr<const Plan>> plans_;
  std::list<PlanPtr> recent_plans_;
};

}  // namespace bestride::cuda
