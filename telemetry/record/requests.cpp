// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/requests.hpp"

#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline telemetry {

std::uint16_t RequestTracker::find_displaced(std::uint64_t handle) const noexcept {
  const unsigned place = home(handle);
  for (unsigned i = 1; i < places_of_a_line; ++i)
    if (file_.request_keys[place ^ i].get() == handle) return static_cast<std::uint16_t>(place ^ i);
  return nowhere;
}

void RequestTracker::add_slowly(std::uint64_t handle, const CallRecord& call, std::uint64_t now, Activity activity,
                                std::uint32_t number, std::uint16_t message) noexcept {
  if (RequestRecord* const known = find(handle)) {
    // MPICH's handle of sends that are complete already.
    known->handles.add(1);
    if (known->message.get() != 0) log(*known, {known->posted.get(), known->posted.get(), 1});
    if (message != 0 && messages_)
      messages_->add({static_cast<std::uint16_t>(message - 1), call.tag.get(), number, call.bytes.get(), now},
                     {now, now, 1});
    return;
  }
  const unsigned place = home(handle);
  for (unsigned i = 0; i < places_of_a_line; ++i) {
    Shared<std::uint64_t>& key = file_.request_keys[place ^ i];
    std::uint64_t vacant = 0;
    if (key.get() != 0) continue;
    // The fields are written before the key by which a reader finds them; the claim keeps other threads away.
    if (!key.atomic().compare_exchange_strong(vacant, claimed_key, std::memory_order_acquire)) continue;
    if (i != 0) unusual_[place / places_of_a_line].fetch_add(1, std::memory_order_relaxed);
    fill(file_.requests[place ^ i], call, now, activity, number, message);
    key.atomic().store(handle, std::memory_order_release);
    return;
  }
  file_.header.requests_dropped.add(1);
}

void RequestTracker::log(RequestRecord& request, const MessageEnd& end) noexcept {
  if (messages_)
    messages_->add({static_cast<std::uint16_t>(request.message.get() - 1), request.tag.get(), request.number.get(),
                    request.bytes.get(), request.posted.get()},
                   end);
  set_message(request, 0);
}

void RequestTracker::set_message(RequestRecord& request, std::uint16_t message) noexcept {
  if (request.message.get() != 0) large_.fetch_sub(1, std::memory_order_relaxed);
  if (message != 0) large_.fetch_add(1, std::memory_order_relaxed);
  request.message.set(message);
}

void RequestTracker::complete_slowly(std::uint64_t handle, MessageEnd& end) noexcept {
  const unsigned place = handle != 0 ? place_of(handle) : nowhere;
  if (place == nowhere) return;
  RequestRecord& request = at(place);
  if (request.message.get() != 0) {
    if (end.completed == 0) end.completed = ticks();
    log(request, end);
  }
  request.waiter.set(0);
  if (request.active.get() != active)
    request.active.set(inactive);
  else if (const std::uint16_t handles = request.handles.get(); handles > 1)
    request.handles.set(static_cast<std::uint16_t>(handles - 1));
  else
    free_place(place, handle);
}

void RequestTracker::complete_slowly(std::uint64_t handle) noexcept {
  MessageEnd end;
  complete_slowly(handle, end);
}

void RequestTracker::remove(std::uint64_t handle) noexcept {
  const unsigned place = place_of(handle);
  if (place == nowhere) return;
  if (const std::uint16_t handles = at(place).handles.get(); handles > 1)
    at(place).handles.set(static_cast<std::uint16_t>(handles - 1));
  else
    set_message(at(place), 0), free_place(place, handle);
}

}  // namespace bestride::inline telemetry
