// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/requests.hpp"

#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline telemetry {

void RequestTracker::add(std::uint64_t handle, const CallFacts& call, std::uint64_t now, Activity activity,
                         std::uint32_t number, std::uint32_t message) noexcept {
  if (RequestRecord* const known = find(handle)) {
    // MPICH's handle of sends that are complete already.
    known->handles.add(1);
    if (known->message.get() != 0) log(*known, {known->posted.get(), known->posted.get(), 1});
    if (message != 0 && messages_)
      messages_->add({static_cast<std::uint16_t>(message - 1), call.tag, number, call.bytes, now}, {now, now, 1});
    return;
  }
  const unsigned first = bucket(handle);
  for (unsigned i = first; i < first + requests_per_bucket; ++i) {
    std::uint64_t vacant = 0;
    if (file_.request_keys[i].get() != 0) continue;
    // The fields are written before the key by which a reader finds them; the claim keeps other threads away.
    if (!file_.request_keys[i].atomic().compare_exchange_strong(vacant, claimed_key, std::memory_order_acquire))
      continue;
    RequestRecord& request = file_.requests[i];
    request.posted.set(now);
    request.bytes.set(call.bytes);
    request.function.set(call.function);
    request.active.set(activity);
    request.communicator.set(call.communicator);
    request.peer.set(call.peer);
    request.tag.set(call.tag);
    request.ordinal.set(call.ordinal);
    request.waiter.set(0);
    request.handles.set(1);
    request.number.set(number);
    request.message.set(message);
    file_.request_keys[i].atomic().store(handle, std::memory_order_release);
    return;
  }
  file_.header.requests_dropped.add(1);
}

void RequestTracker::log(RequestRecord& request, const MessageEnd& end) noexcept {
  if (messages_)
    messages_->add({static_cast<std::uint16_t>(request.message.get() - 1), request.tag.get(), request.number.get(),
                    request.bytes.get(), request.posted.get()},
                   end);
  request.message.set(0);
}

void RequestTracker::complete(std::uint64_t handle, MessageEnd& end) noexcept {
  RequestRecord* const request = find(handle);
  if (!request) return;
  if (request->message.get() != 0) [[unlikely]] {
    if (end.completed == 0) end.completed = ticks();
    log(*request, end);
  }
  request->waiter.set(0);
  if (request->active.get() == persistent || request->active.get() == inactive)
    request->active.set(inactive);
  else if (request->handles.get() > 1)
    request->handles.set(static_cast<std::uint16_t>(request->handles.get() - 1));
  else
    free_key(request);
}

void RequestTracker::remove(std::uint64_t handle) noexcept {
  RequestRecord* const request = find(handle);
  if (!request) return;
  if (request->handles.get() > 1)
    request->handles.set(static_cast<std::uint16_t>(request->handles.get() - 1));
  else
    free_key(request);
}

}  // namespace bestride::inline telemetry
