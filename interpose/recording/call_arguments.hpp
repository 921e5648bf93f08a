// SPDX-License-Identifier: Apache-2.0
#pragma once
// The facts of a call for its record, read from its arguments by position (recorded_call.hpp). Nothing here may pass a
// handle to the MPI library that the library has not accepted: the arguments may be invalid.
#include <mpi.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "interpose/objects/runtime.hpp"
#include "interpose/recording/recorded_call.hpp"
#include "interpose/recording/recording.hpp"
#include "telemetry/record/amounts.hpp"

namespace bestride::inline interpose {

inline std::uint64_t handle_bits(MPI_Request request) noexcept {
  return request == MPI_REQUEST_NULL ? 0 : bits_of(request);
}

inline std::int32_t recorded_rank(int rank) noexcept {
  if (rank >= 0) [[likely]]
    return rank;
  return rank == MPI_ANY_SOURCE ? any_rank : rank == MPI_PROC_NULL ? null_rank : rank == MPI_ROOT ? root_rank : no_rank;
}
inline std::int32_t recorded_tag(int tag) noexcept {
  if (tag >= 0) [[likely]]
    return tag;
  return tag == MPI_ANY_TAG ? any_tag : no_tag;
}

/// The kind of object by which members know each other; free: none.
constexpr CommunicatorKind object_kind(const ArgumentPositions& at) noexcept {
  return at.comm >= 0     ? CommunicatorKind::intra
         : at.window >= 0 ? CommunicatorKind::window
         : at.file >= 0   ? CommunicatorKind::file
                          : CommunicatorKind::free;
}
/// The handle of the object by which members know each other; 0: none. `at`: the positions of the arguments. `all`: a
/// tuple of references to them.
template <ArgumentPositions at, class All>
[[gnu::always_inline]] inline std::uint64_t object_of(const All& all) noexcept {
  // The argument is a handle, or a pointer to one. Handles themselves are pointers in some libraries.
  [[maybe_unused]] const auto value = []<class Argument, class Handle>(const Argument& argument, Handle) {
    if constexpr (std::is_convertible_v<Argument, Handle>)
      return bits_of(Handle{argument});
    else
      return argument ? bits_of(Handle{*argument}) : 0;
  };
  if constexpr (at.comm >= 0)
    return value(std::get<at.comm>(all), MPI_Comm{});
  else if constexpr (at.window >= 0)
    return value(std::get<at.window>(all), MPI_Win{});
  else if constexpr (at.file >= 0)
    return value(std::get<at.file>(all), MPI_File{});
  else
    return 0;
}
template <ArgumentPositions at, class All>
[[gnu::always_inline]] inline CallMemo& memo_of(Recording& recording, RecordedThread& thread, const All& all,
                                                const SiteTable::Caller& caller, std::uint16_t function) noexcept {
  return recording.memo_of<object_kind(at)>(thread, caller, function, object_of<at>(all));
}
/// The communicator, window or file of the call; nullptr: not known, or there is none.
template <ArgumentPositions at>
TrackedCommunicator* tracked_by(const CallMemo& memo) noexcept {
  return object_kind(at) != CommunicatorKind::free ? static_cast<TrackedCommunicator*>(memo.tracked) : nullptr;
}

/// Records what a call sends to and expects of each other rank, if it gives an amount for each. A single one is in the
/// record of the call. Types may be arrays, too. `root`: no_rank if the call has none.
template <ArgumentPositions at, class All>
[[gnu::noinline]] void record_amounts(Recording& recording, const All& all, const TrackedCommunicator& tracked,
                                      std::int32_t root, std::uint32_t ordinal) noexcept {
  const CommunicatorRecord& members = recording.file.communicators[tracked.index];
  if ((members.kind.get() & 0xff) != static_cast<std::uint32_t>(CommunicatorKind::intra)) return;
  const auto size = static_cast<std::size_t>(members.size.get());
  // What only the root gives is not valid on other ranks.
  if (at.root >= 0 && root != members.rank.get()) return;
  AmountsWriter writer(recording.file, tracked.id, ordinal);
  const auto add = [&]<class Counts, class Types>(bool sent, const Counts& counts, const Types& types) {
    const auto size_of = [](MPI_Datatype type) {
      const std::int64_t bytes = runtime().types.size_of(type);
      return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
    };
    const auto product = [](auto count, std::uint64_t bytes) {
      if (count <= 0) return std::uint64_t{0};
      // Bytes of the type are not known, or too many for 64 bits.
      const bool known = bytes != 0 && static_cast<std::uint64_t>(count) <= unknown_amount;
      return known ? static_cast<std::uint64_t>(count) * bytes : unknown_amount;
    };
    if constexpr (std::is_pointer_v<Counts>) {
      if (!counts) return;
      if constexpr (std::is_convertible_v<Types, MPI_Datatype>) {
        const std::uint64_t bytes = size_of(types);
        writer.add(sent, size, [&](std::size_t i) { return product(counts[i], bytes); });
      } else if (types) {
        writer.add(sent, size,
                   [&](std::size_t i) { return product(counts[i], counts[i] > 0 ? size_of(types[i]) : 0); });
      }
    }
  };
  const auto is_in_place = [&](const void* buffer) { return buffer == MPI_IN_PLACE; };
  bool sends = at.out_counts >= 0, receives = at.in_counts >= 0;
  if constexpr (at.out_buffer >= 0) sends = sends && !is_in_place(std::get<at.out_buffer>(all));
  if constexpr (at.in_buffer >= 0) receives = receives && !is_in_place(std::get<at.in_buffer>(all));
  if constexpr (at.out_counts >= 0)
    if (sends) add(true, std::get<at.out_counts>(all), std::get<at.out_type>(all));
  if constexpr (at.in_counts >= 0)
    if (receives) add(false, std::get<at.in_counts>(all), std::get<at.in_type>(all));
}

/// `quick`: is_quick().
template <RecordKind kind, ArgumentPositions at, bool quick, class All>
[[gnu::always_inline]] inline CallFacts facts_of(Recording& recording, std::uint16_t function, const All& all,
                                                 CallMemo& memo, TrackedCommunicator* tracked) noexcept {
  CallFacts facts;
  facts.function = function;
  facts.site = static_cast<std::uint32_t>(memo.site);
  if constexpr (object_kind(at) != CommunicatorKind::free)
    facts.communicator = memo.communicator;
  else if (tracked)
    facts.communicator = tracked->id;
  if constexpr (at.peer >= 0) facts.peer = recorded_rank(std::get<at.peer>(all));
  if constexpr (at.root >= 0) facts.peer = recorded_rank(std::get<at.root>(all));
  if constexpr (at.tag >= 0) facts.tag = recorded_tag(std::get<at.tag>(all));
  if constexpr (at.peer2 >= 0) facts.second_peer = recorded_rank(std::get<at.peer2>(all));
  if constexpr (at.tag2 >= 0) facts.second_tag = recorded_tag(std::get<at.tag2>(all));
  if constexpr (at.number >= 0) facts.second_tag = std::get<at.number>(all);
  if constexpr (at.operation >= 0 && at.type >= 0)
    facts.operation =
        reduction_code(reduction_op_of(std::get<at.operation>(all)), basic_type_of(std::get<at.type>(all)));
  std::uint64_t bytes = 0;  // also for an in-place call
  if constexpr (quick && at.count >= 0 && at.type >= 0) {
    facts.bytes = bytes = static_cast<std::uint64_t>(std::get<at.count>(all)) * memo.type_size;
  } else if constexpr (at.count >= 0 && at.type >= 0) {
    bool in_place = false;
    if constexpr (at.buffer >= 0) in_place = std::get<at.buffer>(all) == MPI_IN_PLACE;
    if ((!in_place || at.operation >= 0) && std::get<at.count>(all) > 0)
      bytes = static_cast<std::uint64_t>(std::get<at.count>(all)) * recording.size_of(memo, std::get<at.type>(all));
    if (!in_place) facts.bytes = bytes;
  }
  if constexpr (is_collective(kind))
    if (tracked) {
      if constexpr (at.operation >= 0 && at.count >= 0 && at.type >= 0)
        facts.ordinal =
            tracked->next_ordinal(recording.file, facts.operation, at.root >= 0 ? facts.peer : no_rank, bytes);
      else
        facts.ordinal = tracked->next_ordinal(recording.file);
      if constexpr (at.in_counts >= 0 && !prepares_request(kind))
        if (recording.observed) record_amounts<at>(recording, all, *tracked, facts.peer, facts.ordinal);
    }
  return facts;
}

/// True if a polling call found something.
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

}  // namespace bestride::inline interpose
