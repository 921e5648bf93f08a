// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerTable: messages and bytes to and from each peer, in the record file.
//
// Open addressing with a bounded number of probes; a peer that finds no place is counted as dropped. Counts of threads
// that name the same peer at one time may be missed. Receives from any source are not counted.
#include <cstdint>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

class PeerTable {
 public:
  explicit PeerTable(RecordFile& file) noexcept : file_(file) {}

  /// The key of a rank of MPI_COMM_WORLD; of a rank of the communicator at `index`, whose members are not known.
  static std::uint64_t key_in_world(std::int32_t rank) noexcept { return static_cast<std::uint32_t>(rank) + 1; }
  static std::uint64_t key_in(std::uint32_t index, std::int32_t rank) noexcept {
    return (std::uint64_t{index} + 1) << 32 | (static_cast<std::uint32_t>(rank) + 1);
  }

  /// nullptr, counted as dropped: no place.
  PeerRecord* find(std::uint64_t key) noexcept {
    unsigned i = static_cast<unsigned>((key * 0x9E3779B97F4A7C15u) >> 40) % max_peers;
    for (unsigned probe = 0; probe < most_probes; ++probe, i = (i + 1) % max_peers) {
      std::uint64_t there = file_.peers[i].key.get();
      if (there == key) return &file_.peers[i];
      if (there == 0 && (file_.peers[i].key.atomic().compare_exchange_strong(there, key) || there == key))
        return &file_.peers[i];
    }
    file_.header.peers_dropped.add(1);
    return nullptr;
  }
  void count_sent(std::uint64_t key, std::uint64_t bytes) noexcept {
    if (PeerRecord* const peer = find(key)) {
      peer->sent_messages.add(1);
      peer->sent_bytes.add(bytes);
    }
  }
  void count_received(std::uint64_t key, std::uint64_t bytes) noexcept {
    if (PeerRecord* const peer = find(key)) {
      peer->received_messages.add(1);
      peer->received_bytes.add(bytes);
    }
  }

 private:
  static constexpr unsigned most_probes = 16;

  RecordFile& file_;
};

}  // namespace bestride::inline telemetry
