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

#include "interpose/mpi/argument_error.hpp"
#include "interpose/mpi/noted_error.hpp"
#include "interpose/recording/affected_objects.hpp"
#include "interpose/recording/crash_notes.hpp"
#include "interpose/recording/error_notes.hpp"
#include "interpose/recording/polled_objects.hpp"

namespace bestride::inline interpose {

/// True if nothing but the usual has to be done for a call: its thread is not in another one, its place, communicator
/// and type are those of the memo, it is not timed, a message is small, a collective is not in place, and a wait has
/// not too many requests and no large message. Then its entry calls nothing before the function itself, so all
/// arguments stay where they are.
template <RecordKind kind, ArgumentPositions at, class All>
[[gnu::always_inline]] inline bool is_quick(const Recording& recording, const RecordedThread& thread,
                                            const CallMemo& memo, std::uint64_t address, const All& all) noexcept {
  std::uint64_t differs = recording.difference<object_kind(at)>(memo, address, object_of<at>(all));
  if constexpr (at.type >= 0) differs |= memo.type ^ bits_of(std::get<at.type>(all));
  if (differs != 0 || thread.times_next()) return false;
  if constexpr (is_collective(kind) && at.buffer >= 0)
    if (std::get<at.buffer>(all) == MPI_IN_PLACE) return false;
  if constexpr (at.count >= 0) {
    constexpr std::uint64_t valid = std::uint64_t{1} << 62;  // a count may be negative
    return static_cast<std::uint64_t>(std::get<at.count>(all)) * memo.type_size <
           (sends(kind) || receives(kind) ? least_message_bytes : valid);
  }
  if constexpr (completes_requests(kind)) {
    if (recording.requests.large_pending() || recording.communicators.duplicates_pending()) return false;
    if constexpr (completes_array(kind))
      return static_cast<std::uint64_t>(std::get<at.number>(all)) - 1 < thread.wait_list_bytes / sizeof(MPI_Request) &&
             std::get<at.requests>(all) != nullptr;
    else
      return std::get<at.request>(all) && *std::get<at.request>(all) != MPI_REQUEST_NULL;
  }
  return true;
}

/// Records a call and its end, also if an error handler throws. `timed_end`: see Recording::end_timed.
template <bool timed_end, bool quick>
class RecordedScope {
 public:
  [[gnu::always_inline]] RecordedScope(Recording& recording, ThreadRecorder& thread, const CallMemo& memo,
                                       const CallFacts& facts) noexcept
      : recording_(recording), thread_(thread), memo_(memo) {
    if constexpr (quick)
      thread.begin_untimed(facts);
    else
      thread.begin(facts);
  }
  RecordedScope(const RecordedScope&) = delete;
  RecordedScope& operator=(const RecordedScope&) = delete;
  [[gnu::always_inline]] ~RecordedScope() {
    SiteRecord& site = at_offset<SiteRecord>(recording_.file, memo_.site_offset);
    SiteTable::count(site, thread_.call->bytes.get());
    if (!quick && thread_.timed)
      recording_.end_timed(thread_, site, timed_end);
    else
      thread_.end(1);
  }

 private:
  Recording& recording_;
  ThreadRecorder& thread_;
  const CallMemo& memo_;
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

  /// The entry of the MPI_ name. `waits`: functions.tsv says that the call may wait.
  template <Below* below, std::uint16_t function, RecordKind kind, bool waits, ArgumentPositions at>
  [[gnu::noinline]] static Result call(Arguments... arguments) {
    if constexpr (is_frequent(kind)) {
      if (ThreadRecorder& thread = *thread_recorder; thread.gate == 0) [[likely]] {
        const std::tuple<Arguments&...> all(arguments...);
        auto& recorded = static_cast<RecordedThread&>(thread);
        Recording& recording = *Recording::get();
        const auto address = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
        CallMemo& memo = recorded.memos[CallMemo::index(address)];
        if (is_quick<kind, at>(recording, recorded, memo, address, all)) [[likely]]
          return record<function, kind, waits, at, true>(below->mpi, recording, recorded, memo, all, arguments...);
      }
      outer_caller = {__builtin_return_address(0), __builtin_dwarf_cfa()};
      return call_fully<below, function, kind, waits, at>(arguments...);
    } else {
      return call_from<below, function, kind, waits, at>({__builtin_return_address(0), __builtin_dwarf_cfa()},
                                                         arguments...);
    }
  }

  /// The entry of the PMPI_ name. Another instance of the template would double the size of the library. Instead this
  /// function jumps to the entry of the MPI_ name, which therefore finds the same return address.
  template <Below* below, std::uint16_t function, RecordKind kind, bool waits, ArgumentPositions at>
  static Result call_by_pmpi_name(Arguments... arguments) {
    if constexpr (begins_recording(kind)) Recording::begin();
    ThreadRecorder& thread = *Recorder::get().attach_thread();
    if (is_inside<kind>(thread, __builtin_dwarf_cfa())) return below->pmpi(arguments...);
    thread.gate = ThreadRecorder::by_pmpi_name;
    return call<below, function, kind, waits, at>(arguments...);
  }

 private:
  /// True if the thread is in a recorded call, or is not recorded. `frame`: of the new call. MPI_Abort ends the call in
  /// which it is made, by an operation of MPI_Op_create for example; by an error handler, the error says more.
  template <RecordKind kind>
  static bool is_inside(ThreadRecorder& thread, const void* frame) noexcept {
    if ((thread.gate & ThreadRecorder::inside) == 0) return false;
    const bool ends_call = kind == RecordKind::abort && thread.record && thread.call && !NotedError::exists();
    if (!ends_call && !has_left_error_handler(frame)) return true;
    thread.abandon();
    return false;
  }

  template <Below* below, std::uint16_t function, RecordKind kind, bool waits, ArgumentPositions at>
  [[gnu::noinline]] static Result call_fully(Arguments... arguments) {
    const SiteTable::Caller caller = outer_caller;
    return call_from<below, function, kind, waits, at>(caller, arguments...);
  }

  template <Below* below, std::uint16_t function, RecordKind kind, bool waits, ArgumentPositions at>
  [[gnu::always_inline]] static Result call_from(SiteTable::Caller caller, Arguments... arguments) {
    if constexpr (begins_recording(kind)) Recording::begin();
    ThreadRecorder* thread = thread_recorder;
    Pointer next = below->mpi;
    if (thread->gate != 0) [[unlikely]] {
      thread = Recorder::get().attach_thread();
      if (is_inside<kind>(*thread, caller.frame)) return next(arguments...);
      if (thread->gate & ThreadRecorder::by_pmpi_name) next = below->pmpi;
      thread->gate = 0;
    }
    const std::tuple<Arguments&...> all(arguments...);
    if constexpr (kind == RecordKind::wait || kind == RecordKind::test)
      if (const MPI_Request* const request = std::get<at.request>(all); request && *request == MPI_REQUEST_NULL)
        return next(arguments...);  // waits for nothing
    auto& recorded = static_cast<RecordedThread&>(*thread);
    if constexpr (is_poll(kind)) {
      return poll<function, kind, at>(next, recorded, all, caller, arguments...);
    } else {
      Recording& recording = *Recording::get();
      CallMemo& memo = memo_of<at>(recording, recorded, all, caller, function);
      return record<function, kind, waits, at, false>(next, recording, recorded, memo, all, arguments...);
    }
  }

  template <std::uint16_t function, RecordKind kind, bool waits, ArgumentPositions at, bool quick, class All>
  [[gnu::always_inline]] static Result record(Pointer next, Recording& recording, RecordedThread& thread,
                                              CallMemo& memo, const All& all, Arguments... arguments) {
    TrackedCommunicator* tracked = tracked_by<at>(memo);
    if constexpr (kind == RecordKind::finalize) {
      tracked = recording.communicators.find(bits_of(MPI_COMM_WORLD), CommunicatorKind::intra);
      recording.finalizing();
    }
    Result result;
    {
      std::conditional_t<completes_requests(kind), CompletedRequests<kind, at, quick>, NoObjects> completed(
          recording, thread, all);
      std::conditional_t<frees_object(kind), FreedObject<kind, at>, NoObjects> freed(recording, all);
      std::conditional_t<changes_access(kind), AccessEpoch<kind, at>, NoObjects> access(recording, tracked, all);
      // From here on the facts are read from the record: across the call they would occupy registers.
      const RecordedScope<waits, quick> scope(recording, thread, memo,
                                              facts_of<kind, at, quick>(recording, function, all, memo, tracked));
      const std::conditional_t<quick, NoLargeMessages, LargeMessages<kind, (at.peer2 >= 0)>> large(
          recording, *thread.call, tracked);
      // Some versions of MPICH return, and the process ends somewhere else.
      if constexpr (kind == RecordKind::abort) note_exit(std::get<1>(all));
      result = next(arguments...);
      if (result == MPI_SUCCESS) [[likely]] {
        apply_effects<kind, at>(recording, *thread.call, all, memo, tracked, large, thread.latest);
        if constexpr (completes_requests(kind)) completed.complete(all);
        freed.confirm();
        access.confirm();
        if constexpr (kind == RecordKind::initialize) recording.initialized();
      }
      if constexpr (completes_requests(kind))
        if (result != MPI_SUCCESS) completed.complete_freed(all);
      if constexpr (is_collective(kind))
        if (result != MPI_SUCCESS && tracked && is_argument_error(result)) {
          tracked->take_ordinal_back(recording.file);
          thread.call->ordinal.set(0);
        }
    }
    if constexpr (kind == RecordKind::finalize)
      if (result == MPI_SUCCESS) recording.finalized();
    return result;
  }

  template <std::uint16_t function, RecordKind kind, ArgumentPositions at, class All>
  [[gnu::always_inline]] static Result poll(Pointer next, RecordedThread& thread, const All& all,
                                            const SiteTable::Caller& caller, Arguments... arguments) {
    CompletedRequests<kind, at, false> completed(*Recording::get(), thread, all);
    struct ClosedGate {
      std::uint32_t& gate;
      explicit ClosedGate(std::uint32_t& of) noexcept : gate(of) { gate = ThreadRecorder::inside; }
      ~ClosedGate() { gate = 0; }
    };
    Result result;
    {
      const ClosedGate closed(thread.gate);
      result = next(arguments...);
    }
    if (result == MPI_SUCCESS && found_something<kind, at>(all)) {
      Recording& recording = *Recording::get();
      CallMemo& memo = memo_of<at>(recording, thread, all, caller, function);
      TrackedCommunicator* const tracked = tracked_by<at>(memo);
      const RecordedScope<false, false> scope(recording, thread, memo,
                                              facts_of<kind, at, false>(recording, function, all, memo, tracked));
      completed.complete(all);
    } else if (thread.count_poll(function, poll_key<kind, at>(function, all))) [[unlikely]] {
      note_poll<kind, at>(*Recording::get(), thread, function, all);
    }
    return result;
  }
};

}  // namespace bestride::inline interpose
