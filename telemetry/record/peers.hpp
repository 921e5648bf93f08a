// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerTable: messages and bytes to and from each peer, in the record file.
//
// Open addressing with a bounded number of probes; a peer that finds no place is counted as dropped. Concurrent
// increments for the same peer may be lost.
#include <cstdint>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

class PeerTable {
 public:
  explicit PeerTable(RecordFile& file) noexcept : file_(file) {}

  /// The key of a rank of MPI_COMM_WORLD.
  static std::uint64_t key_in_world(std::int32_t rank) noexcept { return static_cast<std::uint32_t>(rank) + 1; }
  /// The key of a rank of the communicator at `index`, whose members are not known.
  static std::uint64_t key_in(std::uint32_t index, std::int32_t rank) noexcept {
    return (std::uint64_t{index} + 1) << 32 | (static_cast<std::uint32_t>(rank) + 1);
  }

  /// The key of a rank of the communicator at `index`, whose members are evenly spaced, or not known: see the members
  /// of CommunicatorRecord with these names.
  static std::uint64_t key_of(std::uint32_t index, std::int32_t first_member, std::int32_t stride,
                              std::int32_t rank) noexcept {
    return first_member >= 0 && stride != 0 ? key_in_world(first_member + rank * stride) : key_in(index, rank);
  }

  /// The place of a peer that has one, else nullptr.
  PeerRecord* known(std::uint64_t key) noexcept {
    unsigned i = first_place(key);
    for (unsigned probe = 0; probe < most_probes; ++probe, i = (i + 1) % max_peers)
      if (const std::uint64_t there = file_.peers[i].key.get(); there == key || there == 0)
        return there == 0 ? nullptr : &file_.peers[i];
    return nullptr;
  }
  /// The index of a peer in the record file, for MessageRecord::peer.
  std::uint16_t index_of(const PeerRecord* peer) const noexcept {
    return static_cast<std::uint16_t>(peer - file_.peers);
  }
  /// The place of a peer, which is created if needed. nullptr: there is no place left; the peer is counted as dropped.
  [[gnu::always_inline]] PeerRecord* find(std::uint64_t key) noexcept {
    PeerRecord& first = file_.peers[first_place(key)];
    return first.key.get() == key ? &first : find_or_add(key);
  }
  /// Counts a message and returns its number among those in this direction, from 1.
  [[gnu::always_inline]] static std::uint32_t count(PeerRecord& peer, bool sent, std::uint64_t bytes) noexcept {
    Shared<std::uint64_t>& messages = sent ? peer.sent_messages : peer.received_messages;
    const std::uint64_t number = messages.get() + 1;
    (sent ? peer.sent_bytes : peer.received_bytes).add(bytes);
    messages.set(number);
    return static_cast<std::uint32_t>(number);
  }
  /// `key` 0: the peer is not known. Returns the number of the message to this peer; 0: not counted.
  std::uint32_t count_sent(std::uint64_t key, std::uint64_t bytes) noexcept {
    PeerRecord* const peer = key != 0 ? find(key) : nullptr;
    if (!peer) return file_.header.other_sends.add(1), 0;
    return count(*peer, true, bytes);
  }
  /// `key` 0: the peer is not known, or any. Returns the number of the message from this peer.
  std::uint32_t count_received(std::uint64_t key, std::uint64_t bytes) noexcept {
    PeerRecord* const peer = key != 0 ? find(key) : nullptr;
    if (!peer) return file_.header.other_receives.add(1), 0;
    return count(*peer, false, bytes);
  }

 private:
  static constexpr unsigned most_probes = 16;
  static unsigned first_place(std::uint64_t key) noexcept {
    return static_cast<unsigned>((key * 0x9E3779B97F4A7C15u) >> 40) % max_peers;
  }
  [[gnu::noinline]] PeerRecord* find_or_add(std::uint64_t key) noexcept {
    unsigned i = first_place(key);
    for (unsigned probe = 0; probe < most_probes; ++probe, i = (i + 1) % max_peers) {
      std::uint64_t there = file_.peers[i].key.get();
      if (there == key) return &file_.peers[i];
      if (there == 0 && (file_.peers[i].key.atomic().compare_exchange_strong(there, key) || there == key))
        return &file_.peers[i];
    }
    file_.header.peers_dropped.add(1);
    return nullptr;
  }

  RecordFile& file_;
};

}  // namespace bestride::inline telemetry
