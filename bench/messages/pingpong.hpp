// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case measured between ranks 0 and 1: half a round trip of the typed message, and of as many bytes that lie
// together.
#include "cases.hpp"

namespace messages {

struct Timing {
  double typed_us = 0;  ///< median over samples of half a round trip
  double typed_fastest_us = 0;
  double contiguous_us = 0;  ///< the same payload as MPI_BYTE: what the wire allows
  std::ptrdiff_t payload = 0;
  double block = 0;  ///< mean length of the sender's blocks, merged where they touch
  int samples = 0;
  bool right = false;  ///< every byte received and every gap compared, on both ranks
};

/// Collective over the two ranks; takes a little more than `seconds`, of which 0 means to check what arrives and time
/// nothing.
Timing measure(const Case& chosen, double seconds);

}  // namespace messages
