// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a polling call without success asks for.
#include <mpi.h>

#include <cstdint>
#include <tuple>

#include "interpose/recording/call_arguments.hpp"
#include "telemetry/record/poll_notes.hpp"

namespace bestride::inline interpose {

/// A number that is equal for two polling calls that ask for the same, if no other call was made between them.
template <RecordKind kind, ArgumentPositions at, class All>
[[gnu::always_inline]] inline std::uint64_t poll_key(std::uint16_t function, const All& all) noexcept {
  if constexpr (completes_array(kind)) {
    return reinterpret_cast<std::uint64_t>(std::get<at.requests>(all)) ^
           static_cast<std::uint64_t>(std::get<at.number>(all)) << 48;
  } else if constexpr (kind == RecordKind::test) {
    const MPI_Request* const request = std::get<at.request>(all);
    return request ? bits_of(*request) : 0;
  } else if constexpr (at.request >= 0) {
    return bits_of(MPI_Request{std::get<at.request>(all)});
  } else if constexpr (at.peer >= 0) {
    const auto peer = static_cast<std::uint32_t>(std::get<at.peer>(all)),
               tag = static_cast<std::uint32_t>(std::get<at.tag>(all));
    return (static_cast<std::uint64_t>(peer) << 32 | tag) * 0x9E3779B97F4A7C15u ^ object_of<at>(all) << 1;
  } else {
    return ~static_cast<std::uint64_t>(function);
  }
}

template <RecordKind kind, ArgumentPositions at, class All>
[[gnu::noinline]] void note_poll(Recording& recording, ThreadRecorder& thread, std::uint16_t function,
                                 const All& all) noexcept {
  PollNotes notes(thread, poll_key<kind, at>(function, all));
  const auto request = [&](MPI_Request handle) {
    if (handle != MPI_REQUEST_NULL) notes.request(recording.requests.find(handle_bits(handle)));
  };
  if constexpr (completes_array(kind)) {
    for (int i = 0; i < std::get<at.number>(all); ++i) request(std::get<at.requests>(all)[i]);
  } else if constexpr (kind == RecordKind::test) {
    if (std::get<at.request>(all)) request(*std::get<at.request>(all));
  } else if constexpr (at.request >= 0) {
    request(std::get<at.request>(all));
  } else if constexpr (at.peer >= 0) {
    const TrackedCommunicator* const tracked =
        recording.communicators.find(object_of<at>(all), CommunicatorKind::intra);
    notes.probe(function, tracked ? tracked->id : no_index, recorded_rank(std::get<at.peer>(all)),
                recorded_tag(std::get<at.tag>(all)));
  } else {
    notes.others();
  }
}

}  // namespace bestride::inline interpose
