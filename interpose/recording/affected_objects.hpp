// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests, communicators, windows and files that a recorded call completes, frees or creates.
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <tuple>

#include "interpose/recording/call_arguments.hpp"
#include "interpose/recording/large_messages.hpp"

namespace bestride::inline interpose {

/// The requests that a call may complete, copied before the call, because it overwrites their handles.
template <RecordKind kind, ArgumentPositions at>
class CompletedRequests {
 public:
  template <class All>
  CompletedRequests(Recording& recording, ThreadRecorder& thread, const All& all) noexcept
      : recording_(recording), thread_(thread) {
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test) {
      if (const MPI_Request* const request = std::get<at.request>(all)) {
        one_ = *request;
        count_ = 1;
      }
    } else if constexpr (completes_array(kind)) {
      const int count = std::get<at.number>(all);
      const MPI_Request* const requests = std::get<at.requests>(all);
      if (count <= 0 || !requests) return;
      count_ = count < most ? count : most;
      std::memcpy(thread.handles, requests, static_cast<std::size_t>(count_) * sizeof(MPI_Request));
    }
  }
  CompletedRequests(const CompletedRequests&) = delete;
  CompletedRequests& operator=(const CompletedRequests&) = delete;
  /// Also runs if an error handler throws.
  ~CompletedRequests() {
    if (waiting_) set_waiter(false);
  }

  void begin_wait() noexcept {
    waiting_ = true;
    std::uint32_t pending = 0;
    bool large = false;
    for (int i = 0; i < count_; ++i) {
      const std::uint64_t handle = bits(i);
      const RequestRecord* const request = recording_.requests.set_waiter(handle, thread_.slot, true);
      if (!request) {
        pending += handle != 0 ? 1 : 0;
        continue;
      }
      large = large || request->message.get() != 0;
      // Requests that share a handle were complete when they were posted.
      pending += request->active.get() != RequestTracker::inactive && request->handles.get() == 1 ? 1 : 0;
    }
    if (!large) return;
    end_.waited = ticks();
    end_.together = kind == RecordKind::wait_all ? pending : 1;
  }
  /// Call after a test that found completed requests, or after a wait.
  template <class All>
  void complete(const All& all) noexcept {
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test) {
      complete_at(0);
    } else if constexpr (kind == RecordKind::wait_all || kind == RecordKind::test_all) {
      for (int i = 0; i < count_; ++i) complete_at(i);
    } else if constexpr (kind == RecordKind::wait_any || kind == RecordKind::test_any) {
      complete_at(*std::get<at.indices>(all));
    } else if constexpr (completes_array(kind)) {
      const int found = *std::get<at.found>(all);
      if (found > 0) end_.together = static_cast<std::uint32_t>(found);
      for (int i = 0; i < found; ++i) complete_at(std::get<at.indices>(all)[i]);
    }
    if (kind == RecordKind::wait || kind == RecordKind::wait_all) waiting_ = false;  // complete() has done it
  }
  /// Call after a call that failed: completes the requests that it has freed nevertheless.
  template <class All>
  void complete_freed(const All& all) noexcept {
    constexpr int position = completes_array(kind) ? at.requests : at.request;
    const MPI_Request* const now = std::get<position>(all);
    for (int i = 0; i < count_; ++i)
      if (now[i] == MPI_REQUEST_NULL) complete_at(i, false);
  }

 private:
  static constexpr int most = ThreadRecorder::handle_bytes / sizeof(MPI_Request);
  std::uint64_t bits(int i) const noexcept {
    MPI_Request request = one_;
    if constexpr (completes_array(kind))
      std::memcpy(&request, thread_.handles + static_cast<std::size_t>(i) * sizeof request, sizeof request);
    return handle_bits(request);
  }
  void set_waiter(bool waits) noexcept {
    for (int i = 0; i < count_; ++i) recording_.requests.set_waiter(bits(i), thread_.slot, waits);
  }
  void complete_at(int i, bool good = true) noexcept {
    if (i < 0 || i >= count_) return;
    const std::uint64_t request = bits(i);
    recording_.communicators.finish_duplicate(request, good);
    recording_.requests.complete(request, end_);
  }

  Recording& recording_;
  ThreadRecorder& thread_;
  MPI_Request one_ = MPI_REQUEST_NULL;
  int count_ = 0;
  bool waiting_ = false;
  MessageEnd end_;  ///< of its messages
};

/// The object that a call frees. Its entry is removed before the call, because the library may reuse the handle at
/// once, and put back if the call fails.
template <RecordKind kind, ArgumentPositions at>
class FreedObject {
 public:
  template <class All>
  FreedObject(Recording& recording, const All& all) noexcept : recording_(recording) {
    if constexpr (kind == RecordKind::free) {
      if (const MPI_Comm* const comm = std::get<at.comm>(all))
        tracked_ = recording.communicators.extract(bits_ = bits_of(*comm), CommunicatorKind::intra);
    } else if constexpr (kind == RecordKind::free_window) {
      if (const MPI_Win* const window = std::get<at.window>(all))
        tracked_ = recording.communicators.extract(bits_ = bits_of(*window), CommunicatorKind::window);
    } else if constexpr (kind == RecordKind::close_file) {
      if (const MPI_File* const file = std::get<at.file>(all))
        tracked_ = recording.communicators.extract(bits_ = bits_of(*file), CommunicatorKind::file);
    } else if constexpr (kind == RecordKind::free_request) {
      if (const MPI_Request* const request = std::get<at.request>(all))
        recording.requests.remove(handle_bits(*request));
    }
  }
  FreedObject(const FreedObject&) = delete;
  FreedObject& operator=(const FreedObject&) = delete;
  void confirm() noexcept {
    if (tracked_) recording_.communicators.release(tracked_);
    tracked_ = nullptr;
  }
  ~FreedObject() {
    if (tracked_) recording_.communicators.put_back(bits_, tracked_);
  }

 private:
  Recording& recording_;
  TrackedCommunicator* tracked_ = nullptr;
  std::uint64_t bits_ = 0;
};

/// Replaces these two classes in all other calls, at no cost.
struct NoObjects {
  template <class... Arguments>
  explicit NoObjects(const Arguments&...) noexcept {}
  void confirm() noexcept {}
};

/// Applies the effects of a successful call to communicators and requests.
template <RecordKind kind, ArgumentPositions at, class All>
[[gnu::always_inline]] inline void apply_effects(Recording& recording, const CallFacts& facts, const All& all,
                                                 TrackedCommunicator* tracked,
                                                 const LargeMessages<kind, (at.peer2 >= 0)>& large,
                                                 std::uint64_t now) noexcept {
  std::uint32_t sent = 0, received = 0;
  if constexpr (receives(kind)) {
    const std::int32_t source = at.peer2 >= 0 ? facts.second_peer : facts.peer;
    if (source != null_rank) received = recording.peers.count_received(peer_key(tracked, source), facts.bytes);
  }
  if constexpr (sends(kind))
    if (facts.peer != null_rank) sent = recording.peers.count_sent(peer_key(tracked, facts.peer), facts.bytes);
  [[maybe_unused]] const std::uint32_t message = large.finish(recording, facts, tracked, sent, received);
  if constexpr (starts_request(kind) || (prepares_request(kind)) ||
                (kind == RecordKind::one_sided && at.request >= 0)) {
    if (const std::uint64_t bits = handle_bits(*std::get<at.request>(all)))
      recording.requests.add(bits, facts, large.posted_or(now),
                             prepares_request(kind) ? RequestTracker::inactive : RequestTracker::active,
                             sends(kind) ? sent : received, message);
  }
  if constexpr (kind == RecordKind::activate) recording.activate(handle_bits(*std::get<at.request>(all)), now);
  if constexpr (kind == RecordKind::activate_all)
    for (int i = 0; i < std::get<at.number>(all); ++i)
      recording.activate(handle_bits(std::get<at.requests>(all)[i]), now);
  if constexpr (kind == RecordKind::create) recording.communicators.add(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::create_some) recording.communicators.add_unrelated(*std::get<at.made>(all));
  if constexpr (kind == RecordKind::start_create)
    recording.communicators.begin_duplicate(tracked, handle_bits(*std::get<at.request>(all)), std::get<at.made>(all));
  if constexpr (kind == RecordKind::create_window) recording.communicators.add_window(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::open_file) recording.communicators.add_file(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::name)
    recording.communicators.set_name(std::get<at.comm>(all), std::get<at.name>(all));
}

}  // namespace bestride::inline interpose
