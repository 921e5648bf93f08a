// SPDX-License-Identifier: Apache-2.0
#pragma once
// The recording entries: one function per recorded MPI function, by both names, on top of the accelerating entries.
//
// A recording entry writes the call into the thread's ring, makes it, and writes its end. It changes no argument and no
// result. Calls that a recorded call makes inside, by the library or by another tool, are not recorded, so a call is
// recorded once, whichever language binding or tool it passes through. All entries are instances of one template on the
// function's type: the arguments that matter are picked by position (recorded_call.hpp). Alternative considered:
// recording inside the accelerating entries, which would leave out the calls that have none.
#include <mpi.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "interpose/recording/affected_objects.hpp"

namespace bestride::inline interpose {

/// Records the end of a call, also if an error handler throws.
class RecordedScope {
 public:
  [[gnu::always_inline]] RecordedScope(Recording& recording, ThreadRecorder& thread, const CallFacts& facts,
                                       bool timed_end) noexcept
      : recording_(recording), thread_(thread) {
    timed_ = thread.begin(facts) && (timed_end || (thread.calls & 15) == 0);
    if (thread.calls % Recorder::check_period == 0) [[unlikely]]
      Recorder::get().check_rate(thread);
  }
  RecordedScope(const RecordedScope&) = delete;
  RecordedScope& operator=(const RecordedScope&) = delete;
  [[gnu::always_inline]] ~RecordedScope() {
    const CallRecord& call = *thread_.call;
    recording_.sites.count(call.site.get(), call.bytes.get(), thread_.end(timed_ ? ticks() : 1));
  }

 private:
  Recording& recording_;
  ThreadRecorder& thread_;
  bool timed_;
};

template <class Function>
struct RecordingEntry;

template <class Result, class... Arguments>
struct RecordingEntry<Result(Arguments...)> {
  using Pointer = Result (*)(Arguments...);

  /// Where the slots of the function's two names would lead without recording.
  struct Below {
    Pointer mpi = nullptr, pmpi = nullptr;
  };

  /// The entry of the MPI_ name.
  template <Below* below, std::uint16_t function, RecordKind kind, ArgumentPositions at>
  [[gnu::noinline]] static Result call(Arguments... arguments) {
    if constexpr (begins_recording(kind)) Recording::begin();
    ThreadRecorder& thread = this_thread_recorder();
    if (thread.depth != 0) [[unlikely]]
      return below->mpi(arguments...);
    const Pointer next = std::exchange(thread.called_by_pmpi_name, false) ? below->pmpi : below->mpi;
    const std::tuple<Arguments&...> all(arguments...);
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test)
      if (const MPI_Request* const request = std::get<at.request>(all); request && *request == MPI_REQUEST_NULL)
        return next(arguments...);  // waits for nothing
    const SiteTable::Caller caller{__builtin_return_address(0), __builtin_dwarf_cfa()};
    if constexpr (is_poll(kind))
      return poll<function, kind, at>(next, thread, all, caller, arguments...);
    else
      return record<function, kind, at>(next, thread, all, caller, arguments...);
  }

  /// The entry of the PMPI_ name. Another instance of the template would double the size of the library. Instead this
  /// function jumps to the entry of the MPI_ name, which therefore finds the same return address.
  template <Below* below, std::uint16_t function, RecordKind kind, ArgumentPositions at>
  static Result call_by_pmpi_name(Arguments... arguments) {
    if constexpr (begins_recording(kind)) Recording::begin();
    ThreadRecorder& thread = this_thread_recorder();
    if (thread.depth != 0) return below->pmpi(arguments...);
    thread.called_by_pmpi_name = true;
    return call<below, function, kind, at>(arguments...);
  }

 private:
  template <std::uint16_t function, RecordKind kind, ArgumentPositions at, class All>
  [[gnu::always_inline]] static Result record(Pointer next, ThreadRecorder& thread, const All& all,
                                              const SiteTable::Caller& caller, Arguments... arguments) {
    Recording& recording = *Recording::get();
    TrackedCommunicator* tracked = communicator_of<at>(recording, all);
    if constexpr (kind == RecordKind::finalize) {
      tracked = recording.communicators.find(bits_of(MPI_COMM_WORLD), CommunicatorKind::intra);
      recording.finalizing();
    }
    Result result;
    {
      std::conditional_t<completes_requests(kind), CompletedRequests<kind, at>, NoObjects> completed(recording, thread,
                                                                                                     all);
      std::conditional_t<frees_object(kind), FreedObject<kind, at>, NoObjects> freed(recording, all);
      // From here on the facts are read from the record: across the call they would occupy registers.
      const RecordedScope scope(recording, thread, facts_of<kind, at>(recording, function, all, tracked, caller),
                                may_wait(kind));
      const LargeMessages<kind, (at.peer2 >= 0)> large(recording, *thread.call, tracked);
      result = next(arguments...);
      if (result == MPI_SUCCESS) {
        apply_effects<kind, at>(recording, *thread.call, all, tracked, large, thread.latest);
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

  template <std::uint16_t function, RecordKind kind, ArgumentPositions at, class All>
  [[gnu::always_inline]] static Result poll(Pointer next, ThreadRecorder& thread, const All& all,
                                            const SiteTable::Caller& caller, Arguments... arguments) {
    CompletedRequests<kind, at> completed(*Recording::get(), thread, all);
    struct Depth {
      unsigned& value;
      explicit Depth(unsigned& depth) noexcept : value(depth) { value = 1; }
      ~Depth() { value = 0; }
    };
    Result result;
    {
      const Depth depth(thread.depth);
      result = next(arguments...);
    }
    if (result == MPI_SUCCESS && found_something<kind, at>(all)) {
      Recording& recording = *Recording::get();
      TrackedCommunicator* const tracked = communicator_of<at>(recording, all);
      const RecordedScope scope(recording, thread, facts_of<kind, at>(recording, function, all, tracked, caller),
                                false);
      completed.complete(all);
    } else {
      thread.count_poll(function);
    }
    return result;
  }
};

}  // namespace bestride::inline interpose
