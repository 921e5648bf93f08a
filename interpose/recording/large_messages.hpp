// SPDX-License-Identifier: Apache-2.0
#pragma once
// The large messages that a call posts: which of them are remembered, and when they were posted.
//
// Their times are read in addition to those of the call, because not every call is timed. The log limits how many
// messages are remembered per second. The cost is one comparison for other messages, and a look-up of the peer for
// large ones.
#include <cstdint>

#include "interpose/recording/communicators.hpp"
#include "interpose/recording/recorded_call.hpp"
#include "interpose/recording/recording.hpp"
#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline interpose {

/// Takes the place of LargeMessages for a smaller message.
struct NoLargeMessages {
  template <class... Arguments>
  explicit NoLargeMessages(const Arguments&...) noexcept {}
  static std::uint64_t posted_or(std::uint64_t now) noexcept { return now; }
  template <class... Arguments>
  static std::uint16_t finish(const Arguments&...) noexcept {
    return 0;
  }
};

/// Constructed before the call, whose record is written. `call`: this record.
template <RecordKind kind, bool second_peer>
class LargeMessages {
  static constexpr bool posts = kind != RecordKind::start_sendrecv && (sends(kind) || receives(kind));
  static constexpr bool blocks =
      kind == RecordKind::send || kind == RecordKind::receive || kind == RecordKind::sendrecv;

 public:
  [[gnu::always_inline]] LargeMessages(Recording& recording, const CallRecord& call,
                                       const TrackedCommunicator* tracked) noexcept {
    if constexpr (posts)
      if (call.bytes.get() >= least_message_bytes) [[unlikely]]
        choose(recording, call, tracked);
  }
  /// Ticks; `now` if no message is remembered.
  std::uint64_t posted_or(std::uint64_t now) const noexcept { return posted_ != 0 ? posted_ : now; }
  /// Called after the call. Remembers messages that are complete; returns the value for RequestRecord::message of one
  /// that is pending, else 0.
  [[gnu::always_inline]] std::uint16_t finish(Recording& recording, const CallRecord& call,
                                              const TrackedCommunicator* tracked, std::uint32_t sent,
                                              std::uint32_t received) const noexcept {
    if constexpr (posts)
      if (posted_ != 0) [[unlikely]]
        return keep(recording, call, tracked, sent, received);
    return 0;
  }

 private:
  static std::int32_t source(const CallRecord& call) noexcept {
    return second_peer ? call.second_peer.get() : call.peer.get();
  }

  [[gnu::noinline]] void choose(Recording& recording, const CallRecord& call,
                                const TrackedCommunicator* tracked) noexcept {
    // Of a call with two messages, both are remembered or neither, because they end together.
    const auto chosen = [&](std::int32_t rank, bool send) {
      if (rank == null_rank) return true;
      const std::uint64_t key = peer_key(tracked, rank);
      if (key == 0) return false;
      const PeerRecord* const peer = recording.peers.known(key);
      const std::uint64_t past = !peer ? 0 : send ? peer->sent_messages.get() : peer->received_messages.get();
      return recording.messages.chooses(static_cast<std::uint32_t>(past + 1));
    };
    if ((!sends(kind) || chosen(call.peer.get(), true)) && (!receives(kind) || chosen(source(call), false)))
      posted_ = ticks();
  }

  /// `sent`, `received`: their numbers; 0: not known, or none.
  [[gnu::noinline]] std::uint16_t keep(Recording& recording, const CallRecord& call, const TrackedCommunicator* tracked,
                                       std::uint32_t sent, std::uint32_t received) const noexcept {
    [[maybe_unused]] const MessageEnd end{posted_, blocks ? ticks() : 0,
                                          (sent != 0 ? 1u : 0u) + (received != 0 ? 1u : 0u)};
    std::uint16_t message = 0;
    const auto add = [&](std::int32_t rank, std::uint32_t number, std::uint16_t flag) {
      const PeerRecord* const peer = recording.peers.known(peer_key(tracked, rank));
      if (!peer || !recording.messages.chooses(number)) return;
      const auto index = static_cast<std::uint16_t>(recording.peers.index_of(peer) | flag);
      const std::int32_t tag = flag != 0 && second_peer ? call.second_tag.get() : call.tag.get();
      if (blocks)
        recording.messages.add({index, tag, number, call.bytes.get(), posted_}, end);
      else
        message = static_cast<std::uint16_t>(index + 1);
    };
    if (sent != 0) add(call.peer.get(), sent, 0);
    if (received != 0) add(source(call), received, received_flag);
    return message;
  }

  std::uint64_t posted_ = 0;
};

}  // namespace bestride::inline interpose
