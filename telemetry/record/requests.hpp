// SPDX-License-Identifier: Apache-2.0
#pragma once
// RequestTracker: the requests of a record file, by handle.
//
// A handle has one place, which a multiplication yields, so that a look-up reads one key. If another request is there,
// the handle is at one of the seven other places whose keys share the cache line; these are only looked at while one
// of the eight is out of its place. If all eight are taken, the request is dropped and counted. If several threads may
// post requests at a time, a key is claimed by compare-and-exchange, which waits until all earlier stores are in the
// cache (5 to 20 ns), and so is avoided otherwise. Alternative considered: a table that grows, which a reader outside
// the process could not follow.
#include <atomic>
#include <bit>
#include <cstdint>

#include "telemetry/record/layout.hpp"
#include "telemetry/record/message_log.hpp"

namespace bestride::inline telemetry {

class RequestTracker {
 public:
  enum Activity : std::uint16_t { inactive = 0, active = 1, persistent = 2 };  // persistent: active, and may be again

  /// `messages`: where large messages go when their requests are complete; null: nowhere.
  explicit RequestTracker(RecordFile& file, MessageLog* messages = nullptr) noexcept
      : file_(file), messages_(messages) {
    set_concurrent(true);
  }

  /// Whether several threads may make calls at the same time. Called before the first request; until then true.
  void set_concurrent(bool concurrent) noexcept {
    for (std::atomic<std::uint8_t>& each : unusual_) each.store(concurrent ? concurrent_flag : 0);
  }
  /// True if a large message that is to be remembered is pending.
  bool large_pending() const noexcept { return large_.load(std::memory_order_relaxed) != 0; }

  /// Adds the request that `call` has created at `now` (ticks). `handle` is not 0. `number` and `message`: see the
  /// members of RequestRecord with these names.
  [[gnu::always_inline]] void add(std::uint64_t handle, const CallRecord& call, std::uint64_t now, Activity activity,
                                  std::uint32_t number = 0, std::uint16_t message = 0) noexcept {
    RecordFile& file = file_;
    const unsigned place = home(handle);
    const std::uint64_t there = file.request_keys[place].get();
    if (there == 0 && unusual_[place / places_of_a_line].load(std::memory_order_relaxed) == 0) [[likely]] {
      fill(file.requests[place], call, now, activity, number, message);
      file.request_keys[place].atomic().store(handle, std::memory_order_release);
    } else if (there == handle && message == 0 && file.requests[place].message.get() == 0) {
      file.requests[place].handles.add(1);  // MPICH's handle of sends that are complete already
    } else {
      add_slowly(handle, call, now, activity, number, message);
    }
  }
  /// Marks a persistent request as started at `now`. nullptr: it is not known.
  RequestRecord* activate(std::uint64_t handle, std::uint64_t now) noexcept {
    RequestRecord* const request = find(handle);
    if (request) {
      request->posted.set(now);
      request->active.set(persistent);
    }
    return request;
  }
  /// Sets RequestRecord::message; what it was before is forgotten.
  void set_message(RequestRecord& request, std::uint16_t message) noexcept;
  /// Notes that a request is complete: it is forgotten, or becomes inactive if it is persistent. Does nothing if the
  /// handle is not known, or 0. `end`: the end of its message; the time is read when the first message needs it.
  [[gnu::always_inline]] void complete(std::uint64_t handle, MessageEnd& end) noexcept {
    if (!complete_simple(handle)) complete_slowly(handle, end);
  }
  [[gnu::always_inline]] void complete(std::uint64_t handle) noexcept {
    if (!complete_simple(handle)) complete_slowly(handle);
  }
  /// Forgets a request that was freed.
  void remove(std::uint64_t handle) noexcept;

  /// place_of() is the index of a request in RecordFile::requests; `nowhere`: the handle is not known.
  static constexpr std::uint16_t nowhere = 0xffff;
  std::uint16_t place_of(std::uint64_t handle) const noexcept {
    const unsigned place = home(handle);
    if (file_.request_keys[place].get() == handle) [[likely]]
      return static_cast<std::uint16_t>(place);
    return displaced(place) == 0 ? nowhere : find_displaced(handle);
  }
  RequestRecord& at(unsigned place) noexcept { return file_.requests[place]; }
  /// The record of a request; nullptr: the handle is not known, or 0.
  RequestRecord* find(std::uint64_t handle) noexcept {
    const unsigned place = handle != 0 ? place_of(handle) : nowhere;
    return place == nowhere ? nullptr : &at(place);
  }

 private:
  static constexpr unsigned places_of_a_line = 8;
  static_assert(std::has_single_bit(max_requests) && max_requests % places_of_a_line == 0 && max_requests <= 0xffff);
  /// The upper bits of the product are spread evenly over successive handles (Knuth, volume 3, section 6.4).
  static unsigned home(std::uint64_t handle) noexcept {
    return static_cast<unsigned>((handle * 0x9E3779B97F4A7C15u) >> (64 - std::countr_zero(max_requests)));
  }
  void free_place(unsigned place, std::uint64_t handle) noexcept {
    file_.request_keys[place].set(0);
    if (place != home(handle)) [[unlikely]]
      unusual_[place / places_of_a_line].fetch_sub(1, std::memory_order_relaxed);
  }
  /// RequestRecord::active and the fields behind it of an active request without anything special.
  static constexpr std::uint64_t simple = active | std::uint64_t{1} << 16;
  static constexpr std::uint64_t handles_mask = 0xffff0000;
  [[gnu::always_inline]] void fill(RequestRecord& request, const CallRecord& call, std::uint64_t now, Activity activity,
                                   std::uint32_t number, std::uint16_t message) noexcept {
    request.posted.set(now);
    request.bytes.set(call.bytes.get());
    store_word(request.function, load_word(call.function));
    store_word(request.peer, load_word(call.peer));
    store_pair(request.ordinal, call.ordinal.get(), number);
    store_word(request.active, activity | std::uint64_t{1} << 16);
    if (message != 0) [[unlikely]]
      set_message(request, message);
  }
  [[gnu::noinline]] void add_slowly(std::uint64_t handle, const CallRecord& call, std::uint64_t now, Activity activity,
                                    std::uint32_t number, std::uint16_t message) noexcept;
  /// False: the request is not known, or there is more to do.
  [[gnu::always_inline]] bool complete_simple(std::uint64_t handle) noexcept {
    RecordFile& file = file_;
    const unsigned place = home(handle);
    if (file.request_keys[place].get() != handle) [[unlikely]]
      return false;
    RequestRecord& request = file.requests[place];
    const std::uint64_t word = load_word(request.active);
    if (word == simple)
      file.request_keys[place].set(0);
    else if ((word & ~handles_mask) == active)
      request.handles.set(static_cast<std::uint16_t>((word >> 16) - 1));
    else
      return false;
    return true;
  }
  [[gnu::noinline]] void complete_slowly(std::uint64_t handle, MessageEnd& end) noexcept;
  [[gnu::noinline]] void complete_slowly(std::uint64_t handle) noexcept;
  std::uint16_t find_displaced(std::uint64_t handle) const noexcept;
  void log(RequestRecord& request, const MessageEnd& end) noexcept;

  RecordFile& file_;
  MessageLog* const messages_;
  static constexpr std::uint8_t concurrent_flag = 0x80;
  unsigned displaced(unsigned place) const noexcept {
    return unusual_[place / places_of_a_line].load(std::memory_order_relaxed) & ~unsigned{concurrent_flag};
  }
  /// For the places whose keys share a cache line: how many have a request that is not at home(); concurrent_flag.
  std::atomic<std::uint8_t> unusual_[max_requests / places_of_a_line];
  std::atomic<unsigned> large_{0};  ///< requests with a message that is to be remembered
};

}  // namespace bestride::inline telemetry
