// SPDX-License-Identifier: Apache-2.0
#pragma once
// RequestTracker: the requests of a record file, by handle.
//
// A handle belongs to one bucket of eight keys, one cache line, so a look-up reads one line and needs no chain. A key
// is claimed by compare-and-exchange, because several threads may post requests. A full bucket drops the request and
// counts it. Alternative considered: a table that grows, which a reader outside the process could not follow.
#include <cstdint>

#include "telemetry/record/call_facts.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/record/message_log.hpp"

namespace bestride::inline telemetry {

class RequestTracker {
 public:
  enum Activity : std::uint16_t { inactive = 0, active = 1, persistent = 2 };  // persistent: active, and may be again

  /// `messages`: where large messages go when their requests are complete; null: nowhere.
  explicit RequestTracker(RecordFile& file, MessageLog* messages = nullptr) noexcept
      : file_(file), messages_(messages) {}

  /// A call has created a request at `now`. `handle` is not 0. `number` and `message`: as in
  /// RequestRecord.
  void add(std::uint64_t handle, const CallFacts& call, std::uint64_t now, Activity activity, std::uint32_t number = 0,
           std::uint32_t message = 0) noexcept;
  /// A persistent request was started at `now`. nullptr: it is not known.
  RequestRecord* activate(std::uint64_t handle, std::uint64_t now) noexcept {
    RequestRecord* const request = find(handle);
    if (request) {
      request->posted.set(now);
      request->active.set(persistent);
    }
    return request;
  }
  /// The thread in `slot` waits for the request; `waits` false: it no longer does. nullptr: it is not known.
  RequestRecord* set_waiter(std::uint64_t handle, unsigned slot, bool waits) noexcept {
    RequestRecord* const request = find(handle);
    if (request) request->waiter.set(static_cast<std::uint16_t>(waits ? slot + 1 : 0));
    return request;
  }
  /// The request is complete: forgotten, or inactive if it is persistent. `end`: of its message; the time is read when
  /// the first message needs it.
  void complete(std::uint64_t handle, MessageEnd& end) noexcept;
  void complete(std::uint64_t handle) noexcept {
    MessageEnd end;
    complete(handle, end);
  }
  /// The request was freed.
  void remove(std::uint64_t handle) noexcept;

  /// nullptr: unknown.
  RequestRecord* find(std::uint64_t handle) noexcept {
    const unsigned first = bucket(handle);
    for (unsigned i = first; i < first + requests_per_bucket; ++i)
      if (file_.request_keys[i].get() == handle) return &file_.requests[i];
    return nullptr;
  }

 private:
  static unsigned bucket(std::uint64_t handle) noexcept {
    constexpr unsigned buckets = max_requests / requests_per_bucket;
    return static_cast<unsigned>((handle * 0x9E3779B97F4A7C15u) >> 40) % buckets * requests_per_bucket;
  }
  void free_key(RequestRecord* request) noexcept { file_.request_keys[request - file_.requests].set(0); }

  void log(RequestRecord& request, const MessageEnd& end) noexcept;

  RecordFile& file_;
  MessageLog* const messages_;
};

}  // namespace bestride::inline telemetry
