// SPDX-License-Identifier: Apache-2.0
#pragma once
// The recording entries: one function per recorded MPI function, by both names, on top of the accelerating entries.
//
// A recording entry writes the call into the thread's ring, makes it, and writes its end. It changes no argument and no
// result. Calls that a recorded call makes inside, by the library or by another tool, are not recorded, so a call is
// recorded once whatever language or tool it comes through. All entries are instances of one template on the function's
// type: the arguments that matter are picked by position (recorded_call.hpp). Alternative considered: recording inside
// the accelerating entries, which would leave out the calls that have none.
#include <mpi.h>

#include <cstring>
#include <tuple>
#include <type_traits>

#include "interpose/recording/recorded_call.hpp"
#include "interpose/recording/recording.hpp"

namespace bestride::inline interpose {

inline std::uint64_t handle_bits(MPI_Request request) noexcept {
  return request == MPI_REQUEST_NULL ? 0 : bits_of(request);
}

inline std::int32_t recorded_rank(int rank) noexcept {
  return rank >= 0                ? rank
         : rank == MPI_ANY_SOURCE ? any_rank
         : rank == MPI_PROC_NULL  ? null_rank
         : rank == MPI_ROOT       ? root_rank
                                  : no_rank;
}
inline std::int32_t recorded_tag(int tag) noexcept { return tag == MPI_ANY_TAG ? any_tag : tag >= 0 ? tag : no_tag; }

/// `at`: the positions of the arguments. `all`: a tuple of references to them.
template <ArgumentPositions at, class All>
TrackedCommunicator* communicator_of(Recording& recording, const All& all) noexcept {
  // The argument is a handle, or a pointer to one. Handles themselves are pointers in some libraries.
  [[maybe_unused]] const auto value = []<class Argument, class Handle>(const Argument& argument, Handle) {
    if constexpr (std::is_convertible_v<Argument, Handle>)
      return bits_of(Handle{argument});
    else
      return argument ? bits_of(Handle{*argument}) : 0;
  };
  if constexpr (at.comm >= 0)
    return recording.communicators.find(value(std::get<at.comm>(all), MPI_Comm{}), CommunicatorKind::intra);
  else if constexpr (at.window >= 0)
    return recording.communicators.find(value(std::get<at.window>(all), MPI_Win{}), CommunicatorKind::window);
  else if constexpr (at.file >= 0)
    return recording.communicators.find(value(std::get<at.file>(all), MPI_File{}), CommunicatorKind::file);
  else
    return nullptr;
}

template <RecordKind kind, ArgumentPositions at, class All>
[[gnu::always_inline]] inline CallFacts facts_of(Recording& recording, std::uint16_t function, const All& all,
                                                 TrackedCommunicator* tracked, const void* return_address) noexcept {
  CallFacts facts;
  facts.function = function;
  facts.site = recording.sites.find(return_address, function);
  if (tracked) {
    facts.communicator = tracked->index;
    if constexpr (is_collective(kind)) facts.ordinal = tracked->next_ordinal(recording.file);
  }
  if constexpr (at.peer >= 0) facts.peer = recorded_rank(std::get<at.peer>(all));
  if constexpr (at.root >= 0) facts.peer = recorded_rank(std::get<at.root>(all));
  if constexpr (at.tag >= 0) facts.tag = recorded_tag(std::get<at.tag>(all));
  if constexpr (at.peer2 >= 0) facts.second_peer = recorded_rank(std::get<at.peer2>(all));
  if constexpr (at.tag2 >= 0) facts.second_tag = recorded_tag(std::get<at.tag2>(all));
  if constexpr (at.number >= 0) facts.second_tag = std::get<at.number>(all);
  if constexpr (at.operation >= 0) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &std::get<at.operation>(all), sizeof(MPI_Op));
    facts.operation = static_cast<std::uint16_t>(bits);
  }
  if constexpr (at.count >= 0 && at.type >= 0) {
    bool in_place = false;
    if constexpr (at.buffer >= 0) in_place = std::get<at.buffer>(all) == MPI_IN_PLACE;
    if (!in_place && std::get<at.count>(all) > 0)
      facts.bytes = static_cast<std::uint64_t>(std::get<at.count>(all)) * known_type_size(std::get<at.type>(all));
  }
  return facts;
}

/// The requests of a call that completes some, copied before it, because the call overwrites their handles.
template <RecordKind kind, ArgumentPositions at>
class CompletedRequests {
 public:
  template <class All>
  CompletedRequests(RequestTracker& tracker, ThreadRecorder& thread, const All& all) noexcept
      : tracker_(tracker), thread_(thread) {
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
  /// Also if an error handler throws.
  ~CompletedRequests() {
    if (waiting_) set_waiter(false);
  }

  void begin_wait() noexcept {
    waiting_ = true;
    set_waiter(true);
  }
  /// After a call that found something, or has waited for it.
  template <class All>
  void complete(const All& all) noexcept {
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test) {
      complete_at(0);
    } else if constexpr (kind == RecordKind::wait_all || kind == RecordKind::test_all) {
      for (int i = 0; i < count_; ++i) complete_at(i);
    } else if constexpr (kind == RecordKind::wait_any || kind == RecordKind::test_any) {
      complete_at(*std::get<at.indices>(all));
    } else if constexpr (completes_array(kind)) {
      for (int i = 0; i < *std::get<at.found>(all); ++i) complete_at(std::get<at.indices>(all)[i]);
    }
    if (kind == RecordKind::wait || kind == RecordKind::wait_all) waiting_ = false;  // complete() has done it
  }
  /// After a call that failed: the requests that it has freed all the same.
  template <class All>
  void complete_freed(const All& all) noexcept {
    constexpr int position = completes_array(kind) ? at.requests : at.request;
    const MPI_Request* const now = std::get<position>(all);
    for (int i = 0; i < count_; ++i)
      if (now[i] == MPI_REQUEST_NULL) complete_at(i);
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
    for (int i = 0; i < count_; ++i) tracker_.set_waiter(bits(i), thread_.slot, waits);
  }
  void complete_at(int i) noexcept {
    if (i >= 0 && i < count_) tracker_.complete(bits(i));
  }

  RequestTracker& tracker_;
  ThreadRecorder& thread_;
  MPI_Request one_ = MPI_REQUEST_NULL;
  int count_ = 0;
  bool waiting_ = false;
};

/// Whether a polling call found something.
template <RecordKind kind, ArgumentPositions at, class All>
bool found_something(const All& all) noexcept {
  if constexpr (at.found >= 0) {
    const int found = *std::get<at.found>(all);
    return found != MPI_UNDEFINED && found > 0;
  } else {
    if (!*std::get<at.flag>(all)) return false;
    if constexpr (kind == RecordKind::test_any) return *std::get<at.indices>(all) != MPI_UNDEFINED;
    return true;
  }
}

/// What a successful call means for communicators and requests.
template <RecordKind kind, ArgumentPositions at, class All>
void apply_effects(Recording& recording, const CallFacts& facts, const All& all, TrackedCommunicator* tracked,
                   std::uint64_t now) noexcept {
  if constexpr (starts_request(kind) || (prepares_request(kind)) ||
                (kind == RecordKind::one_sided && at.request >= 0)) {
    if (const std::uint64_t bits = handle_bits(*std::get<at.request>(all)))
      recording.requests.add(bits, facts, now,
                             prepares_request(kind) ? RequestTracker::inactive : RequestTracker::active);
  }
  if constexpr (sends(kind))
    if (tracked && facts.peer >= 0) recording.peers.count_sent(tracked->peer_key(facts.peer), facts.bytes);
  if constexpr (receives(kind)) {
    const std::int32_t source = at.peer2 >= 0 ? facts.second_peer : facts.peer;
    if (tracked && source >= 0) recording.peers.count_received(tracked->peer_key(source), facts.bytes);
  }
  if constexpr (kind == RecordKind::activate) recording.requests.activate(handle_bits(*std::get<at.request>(all)), now);
  if constexpr (kind == RecordKind::activate_all)
    for (int i = 0; i < std::get<at.number>(all); ++i)
      recording.requests.activate(handle_bits(std::get<at.requests>(all)[i]), now);
  if constexpr (kind == RecordKind::create) recording.communicators.add(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::create_some) recording.communicators.add_unrelated(*std::get<at.made>(all));
  if constexpr (kind == RecordKind::start_create)
    if (tracked) tracked->children.fetch_add(1, std::memory_order_relaxed);
  if constexpr (kind == RecordKind::create_window) recording.communicators.add_window(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::open_file) recording.communicators.add_file(*std::get<at.made>(all), tracked);
  if constexpr (kind == RecordKind::name)
    recording.communicators.set_name(std::get<at.comm>(all), std::get<at.name>(all));
}

/// The object that a call frees. It loses its entry before the call, because the library may use its handle again at
/// once, and gets it back if the call fails.
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

/// The end of a call, also by an exception from an error handler.
class RecordedScope {
 public:
  [[gnu::always_inline]] RecordedScope(Recording& recording, ThreadRecorder& thread, const CallFacts& facts,
                                       bool timed_end) noexcept
      : recording_(recording), thread_(thread), site_(facts.site), bytes_(facts.bytes) {
    timed_ = thread.begin(facts) && (timed_end || (thread.calls & 15) == 0);
    if ((thread.calls & 4095) == 0) [[unlikely]]
      Recorder::get().check_rate(thread);
  }
  RecordedScope(const RecordedScope&) = delete;
  RecordedScope& operator=(const RecordedScope&) = delete;
  [[gnu::always_inline]] ~RecordedScope() { recording_.sites.count(site_, bytes_, thread_.end(timed_ ? ticks() : 1)); }

 private:
  Recording& recording_;
  ThreadRecorder& thread_;
  const std::uint32_t site_;
  const std::uint64_t bytes_;
  bool timed_;
};

template <class Function>
struct RecordingEntry;

template <class Result, class... Arguments>
struct RecordingEntry<Result(Arguments...)> {
  using Pointer = Result (*)(Arguments...);

  /// `below`: what the slot would lead to without recording.
  template <Pointer* below, std::uint16_t function, RecordKind kind, ArgumentPositions at>
  static Result call(Arguments... arguments) {
    if constexpr (kind == RecordKind::initialize || kind == RecordKind::initialize_session) Recording::begin();
    ThreadRecorder& thread = this_thread_recorder();
    if (thread.depth != 0) [[unlikely]]
      return (*below)(arguments...);
    const std::tuple<Arguments&...> all(arguments...);
    if constexpr (is_poll(kind))
      return poll<below, function, kind, at>(thread, all, __builtin_return_address(0), arguments...);
    else
      return record<below, function, kind, at>(thread, all, __builtin_return_address(0), arguments...);
  }

 private:
  template <Pointer* below, std::uint16_t function, RecordKind kind, ArgumentPositions at, class All>
  [[gnu::always_inline]] static Result record(ThreadRecorder& thread, const All& all, const void* return_address,
                                              Arguments... arguments) {
    Recording& recording = *Recording::get();
    TrackedCommunicator* tracked = communicator_of<at>(recording, all);
    if constexpr (kind == RecordKind::finalize) {
      tracked = recording.communicators.find(bits_of(MPI_COMM_WORLD), CommunicatorKind::intra);
      recording.finalizing();
    }
    const CallFacts facts = facts_of<kind, at>(recording, function, all, tracked, return_address);
    Result result;
    {
      CompletedRequests<kind, at> completed(recording.requests, thread, all);
      if constexpr (completes_requests(kind)) completed.begin_wait();
      FreedObject<kind, at> freed(recording, all);
      const RecordedScope scope(recording, thread, facts, may_wait(kind));
      result = (*below)(arguments...);
      if (result == MPI_SUCCESS) {
        apply_effects<kind, at>(recording, facts, all, tracked, thread.latest);
        if constexpr (completes_requests(kind)) completed.complete(all);
        freed.confirm();
        if constexpr (kind == RecordKind::initialize) recording.initialized();
      }
      if constexpr (completes_requests(kind))
        if (result != MPI_SUCCESS) completed.complete_freed(all);
      if constexpr (is_collective(kind))
        if (result != MPI_SUCCESS && tracked && is_argument_error(result)) tracked->take_ordinal_back(recording.file);
    }
    if constexpr (kind == RecordKind::finalize)
      if (result == MPI_SUCCESS) recording.finalized();
    return result;
  }

  template <Pointer* below, std::uint16_t function, RecordKind kind, ArgumentPositions at, class All>
  [[gnu::always_inline]] static Result poll(ThreadRecorder& thread, const All& all, const void* return_address,
                                            Arguments... arguments) {
    CompletedRequests<kind, at> completed(Recording::get()->requests, thread, all);
    struct Depth {
      unsigned& value;
      explicit Depth(unsigned& depth) noexcept : value(depth) { value = 1; }
      ~Depth() { value = 0; }
    };
    Result result;
    {
      const Depth depth(thread.depth);
      result = (*below)(arguments...);
    }
    if (result == MPI_SUCCESS && found_something<kind, at>(all)) {
      Recording& recording = *Recording::get();
      TrackedCommunicator* const tracked = communicator_of<at>(recording, all);
      const RecordedScope scope(recording, thread,
                                facts_of<kind, at>(recording, function, all, tracked, return_address), false);
      completed.complete(all);
    } else {
      thread.count_poll(function, no_index);
    }
    return result;
  }
};

}  // namespace bestride::inline interpose
