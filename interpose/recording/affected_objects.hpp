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

/// The requests that a call may complete. Their handles are copied before the call, which overwrites them: into the
/// thread's wait list, where a reader finds those for which the call waits. `quick`: see is_quick().
template <RecordKind kind, ArgumentPositions at, bool quick>
class CompletedRequests {
  static constexpr bool waits = kind == RecordKind::wait || kind == RecordKind::wait_all ||
                                kind == RecordKind::wait_any || kind == RecordKind::wait_some;
  using Copy [[gnu::may_alias]] = MPI_Request;
  struct NoEnd {};

 public:
  template <class All>
  [[gnu::always_inline]] CompletedRequests(Recording& recording, RecordedThread& thread, const All& all) noexcept
      : recording_(recording), thread_(thread), copies_(reinterpret_cast<Copy*>(thread.wait_list)) {
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test) {
      const MPI_Request* const request = std::get<at.request>(all);
      if (!quick && !request) return;
      count_ = 1;
      thread.begin_wait_list();
      *copies_ = *request;
    } else if constexpr (completes_array(kind)) {
      const int count = std::get<at.number>(all);
      const MPI_Request* const requests = std::get<at.requests>(all);
      if (!quick && (count <= 0 || !requests)) return;
      count_ = quick || count < most ? count : most;
      if (is_long()) [[unlikely]]
        copies_ = reinterpret_cast<Copy*>(thread.long_list);
      thread.begin_wait_list();
      if (count_ <= 4) [[likely]]
        for (int i = 0; i < count_; ++i) copies_[i] = requests[i];
      else
        std::memcpy(copies_, requests, static_cast<std::size_t>(count_) * sizeof(MPI_Request));
    }
    if constexpr (waits) thread.announce_wait_list(is_long() ? 0 : static_cast<unsigned>(count_));
    if constexpr (waits && !quick)
      if (is_long() || recording.requests.large_pending()) [[unlikely]]
        look_at_requests();
  }
  CompletedRequests(const CompletedRequests&) = delete;
  CompletedRequests& operator=(const CompletedRequests&) = delete;
  /// Also runs if an error handler throws.
  [[gnu::always_inline]] ~CompletedRequests() {
    if constexpr (waits && !quick)
      if (is_long()) [[unlikely]]
        mark(0);
  }

  /// Call after a test that found completed requests, or after a wait.
  template <class All>
  [[gnu::always_inline]] void complete(const All& all) noexcept {
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test) {
      complete_at(0);
    } else if constexpr (kind == RecordKind::wait_all || kind == RecordKind::test_all) {
      for (int i = 0; i < count_; ++i) complete_at(i);
    } else if constexpr (kind == RecordKind::wait_any || kind == RecordKind::test_any) {
      complete_at(*std::get<at.indices>(all));
    } else if constexpr (completes_array(kind)) {
      const int found = *std::get<at.found>(all);
      if constexpr (!quick)
        if (found > 0) end_.together = static_cast<std::uint32_t>(found);
      for (int i = 0; i < found; ++i) complete_at(std::get<at.indices>(all)[i]);
    }
  }
  /// Call after a call that failed: completes the requests that it has freed nevertheless.
  template <class All>
  [[gnu::always_inline]] void complete_freed(const All& all) noexcept {
    constexpr int position = completes_array(kind) ? at.requests : at.request;
    complete_freed(recording_, copies_, count_, std::get<position>(all));
  }

 private:
  static constexpr int most = main_wait_list_bytes / sizeof(MPI_Request);

  /// The thread's wait list does not hold them.
  bool is_long() const noexcept {
    return !quick && completes_array(kind) &&
           static_cast<std::size_t>(count_) * sizeof(MPI_Request) > thread_.wait_list_bytes;
  }
  std::uint64_t bits(int i) const noexcept { return handle_bits(copies_[i]); }
  void mark(std::uint16_t waiter) noexcept {
    for (int i = 0; i < count_; ++i)
      if (RequestRecord* const request = recording_.requests.find(bits(i))) request->waiter.set(waiter);
  }
  /// What a call that waits needs to know before it of the requests one by one: for messages that are to be remembered,
  /// and if the list does not hold them.
  [[gnu::noinline]] void look_at_requests() noexcept {
    if (is_long()) mark(static_cast<std::uint16_t>(thread_.slot + 1));
    std::uint32_t pending = 0;
    bool large = false;
    for (int i = 0; i < count_; ++i) {
      const std::uint64_t handle = bits(i);
      const RequestRecord* const request = recording_.requests.find(handle);
      large = large || (request && request->message.get() != 0);
      // Requests that share a handle were complete when they were posted.
      const bool is_pending =
          request ? request->active.get() != RequestTracker::inactive && request->handles.get() == 1 : handle != 0;
      pending += is_pending ? 1 : 0;
    }
    if (!large) return;
    end_.waited = ticks();
    end_.together = kind == RecordKind::wait_all ? pending : 1;
  }
  [[gnu::always_inline]] void complete_at(int i) noexcept {
    if (i < 0 || i >= count_) return;
    const std::uint64_t request = bits(i);
    if (request == 0) return;
    if constexpr (quick) {
      recording_.requests.complete(request);
    } else {
      recording_.communicators.finish_duplicate(request, true);
      recording_.requests.complete(request, end_);
    }
  }
  [[gnu::noinline]] static void complete_freed(Recording& recording, const Copy* copies, int count,
                                               const MPI_Request* now) noexcept {
    MessageEnd end;
    for (int i = 0; i < count; ++i)
      if (const std::uint64_t request = handle_bits(copies[i]); now[i] == MPI_REQUEST_NULL && request != 0) {
        recording.communicators.finish_duplicate(request, false);
        recording.requests.complete(request, end);
      }
  }

  Recording& recording_;
  RecordedThread& thread_;
  Copy* copies_;
  int count_ = 0;
  [[no_unique_address]] std::conditional_t<quick, NoEnd, MessageEnd> end_;  ///< of its messages
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
    if constexpr (kind == RecordKind::free_window)
      if (tracked_) recording_.epochs.forget(*tracked_);
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

/// An access epoch that a call begins or ends. It counts before the call, which may wait.
template <RecordKind kind, ArgumentPositions at>
class AccessEpoch {
 public:
  template <class All>
  AccessEpoch(Recording& recording, const TrackedCommunicator* window, const All& all) noexcept
      : recording_(recording), window_(window) {
    if (!window_) return;
    if constexpr (kind == RecordKind::begin_access)
      recording_.epochs.begin_access(*window_, group_ = std::get<at.group>(all), 1);
    else
      ended_ = recording_.epochs.end_access(*window_);
  }
  AccessEpoch(const AccessEpoch&) = delete;
  AccessEpoch& operator=(const AccessEpoch&) = delete;
  void confirm() noexcept { window_ = nullptr; }
  ~AccessEpoch() {
    if (!window_) return;
    if constexpr (kind == RecordKind::begin_access)
      recording_.epochs.begin_access(*window_, group_, -1);
    else
      recording_.epochs.take_back(ended_);
  }

 private:
  Recording& recording_;
  const TrackedCommunicator* window_;
  MPI_Group group_ = MPI_GROUP_NULL;
  EpochTracker::Ended ended_;
};

/// Replaces these classes in all other calls, at no cost.
struct NoObjects {
  template <class... Arguments>
  explicit NoObjects(const Arguments&...) noexcept {}
  void confirm() noexcept {}
};

/// Applies the effects of a successful call to communicators and requests. `large`: LargeMessages, or none.
template <RecordKind kind, ArgumentPositions at, class All, class Large>
[[gnu::always_inline]] inline void apply_effects(Recording& recording, const CallRecord& call, const All& all,
                                                 CallMemo& memo, TrackedCommunicator* tracked, const Large& large,
                                                 std::uint64_t now) noexcept {
  std::uint32_t sent = 0, received = 0;
  if constexpr (receives(kind))
    received = recording.count_message<CallMemo::received>(
        memo, at.peer2 >= 0 ? call.second_peer.get() : call.peer.get(), call.bytes.get());
  if constexpr (sends(kind)) sent = recording.count_message<CallMemo::sent>(memo, call.peer.get(), call.bytes.get());
  [[maybe_unused]] const std::uint16_t message = large.finish(recording, call, tracked, sent, received);
  if constexpr (starts_request(kind) || (prepares_request(kind)) ||
                (kind == RecordKind::one_sided && at.request >= 0)) {
    if (const MPI_Request request = *std::get<at.request>(all); request != MPI_REQUEST_NULL) [[likely]]
      recording.requests.add(bits_of(request), call, large.posted_or(now),
                             prepares_request(kind) ? RequestTracker::inactive : RequestTracker::active,
                             sends(kind) ? sent : received, message);
  }
  if constexpr (kind == RecordKind::activate) recording.activate(handle_bits(*std::get<at.request>(all)), now);
  if constexpr (kind == RecordKind::activate_all)
    for (int i = 0; i < std::get<at.number>(all); ++i)
      recording.activate(handle_bits(std::get<at.requests>(all)[i]), now);
  if constexpr (kind == RecordKind::duplicate)
    recording.communicators.add_duplicate(*std::get<at.made>(all), tracked, call.site.get());
  if constexpr (kind == RecordKind::create)
    recording.communicators.add(*std::get<at.made>(all), tracked, call.site.get());
  if constexpr (kind == RecordKind::create_some || kind == RecordKind::create_inter)
    recording.communicators.add_unrelated(*std::get<at.made>(all), call.site.get());
  if constexpr (kind == RecordKind::start_create)
    recording.communicators.begin_duplicate(tracked, handle_bits(*std::get<at.request>(all)), std::get<at.made>(all),
                                            call.site.get());
  if constexpr (kind == RecordKind::create_window)
    recording.communicators.add_window(*std::get<at.made>(all), tracked, call.site.get());
  if constexpr (kind == RecordKind::open_file)
    recording.communicators.add_file(*std::get<at.made>(all), tracked, std::get<at.name>(all), call.site.get());
  if constexpr (kind == RecordKind::name)
    recording.communicators.set_name(object_of<at>(all), object_kind(at), std::get<at.name>(all));
  if constexpr (kind == RecordKind::begin_exposure)
    if (tracked) recording.epochs.begin_exposure(*tracked, std::get<at.group>(all));
}

}  // namespace bestride::inline interpose
