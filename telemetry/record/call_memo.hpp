// SPDX-License-Identifier: Apache-2.0
#pragma once
// CallMemo: what a thread has looked up for its last call from a place in the program, because the next call from there
// mostly has the same communicator, type and peer.
//
// A call then compares the arguments with the memo instead of searching four tables (place, communicator, size of the
// type, peer), which took about a third of its instructions. A memo is private to a thread. Places whose addresses fall
// on the same memo replace each other.
#include <cstdint>
#include <limits>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

struct alignas(64) CallMemo {
  static constexpr unsigned count = 128;  ///< of a thread
  static constexpr std::int32_t no_peer = std::numeric_limits<std::int32_t>::min();
  enum Direction { sent, received };

  std::uint64_t address = 0;              ///< the return address into the program; 0: vacant
  std::uint64_t object = 0;               ///< handle of the communicator, window or file; 0: of a call without one
  void* tracked = nullptr;                ///< what is known of this object, the owner's type; nullptr: nothing
  std::uint32_t communicator = no_index;  ///< communicator_id()
  std::uint32_t generation = 0;           ///< of the communicators when this one was looked up, the owner's number
  std::uint32_t site_offset = 0;          ///< of its SiteRecord in the file
  std::int16_t site = -1;                 ///< -1: no_index, which it becomes as an unsigned number
  std::uint16_t type_size = 0;            ///< of `type`
  std::uint64_t type = 0;                 ///< handle of a predefined type; 0: none yet
  /// The last peer in each Direction that has a PeerRecord, or no_peer; the offset of this record in the file.
  std::int32_t peer[2] = {no_peer, no_peer};
  std::uint32_t peer_offset[2] = {0, 0};

  static unsigned index(std::uint64_t address) noexcept {
    return static_cast<std::uint32_t>(address) * 0x9E3779B1u >> 25;
  }
};
static_assert(sizeof(CallMemo) == 64 && CallMemo::count == 1u << 7);
static_assert(max_sites <= 1u << 15 && no_index == static_cast<std::uint32_t>(std::int16_t{-1}));

template <class Record>
std::uint32_t offset_in(const RecordFile& file, const Record& record) noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<const char*>(&record) - reinterpret_cast<const char*>(&file));
}
template <class Record>
[[gnu::always_inline]] inline Record& at_offset(RecordFile& file, std::uint32_t offset) noexcept {
  return *reinterpret_cast<Record*>(reinterpret_cast<char*>(&file) + offset);
}

}  // namespace bestride::inline telemetry
