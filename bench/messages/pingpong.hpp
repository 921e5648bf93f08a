// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one case between ranks 0 and 1: half a round trip of the typed message, of the same number of contiguous
// bytes, and of these with packing and unpacking by hand.
#include "cases.hpp"

namespace messages {

struct Timing {
  double typed_us = 0;  ///< median over samples of half a round trip
  double typed_fastest_us = 0;
  double contiguous_us = 0;  ///< the same payload as MPI_BYTE, the limit of the transport
  double by_hand_us = 0;     ///< packed by hand, sent as MPI_BYTE, unpacked by hand
  std::ptrdiff_t payload = 0;
  double block = 0;  ///< mean length of the sender's blocks after merging adjacent ones
  int samples = 0;
  bool right = false;  ///< every byte received and every gap compared, on both ranks
};

/// Long messages in both directions. A TCP connection keeps what it has learned from long messages, after which some
/// short messages take up to 1.4 times as long (bench/figures.md); so every launch
/// starts in this state. Collective over the two ranks.
void send_long_messages();

/// Collective over the two ranks. Takes a little more than `seconds`; 0: only checks the received bytes.
Timing measure(const Case& chosen, double seconds);

}  // namespace messages
