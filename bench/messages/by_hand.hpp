// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packing as a careful user writes it: loops over blocks of one length and distance, with copies whose length the
// compiler knows where it is 4, 8, 16, 32 or 64 bytes.
#include <cstddef>
#include <vector>

#include "shape.hpp"

namespace messages {

class ByHand {
 public:
  /// `count` elements of `shape`, whose blocks are still known.
  ByHand(const Shape& shape, int count);
  /// `packed`: size() * count bytes. `data`: the address of the first element.
  void pack(unsigned char* packed, const unsigned char* data) const;
  void unpack(unsigned char* data, const unsigned char* packed) const;

 private:
  struct Loop {
    std::ptrdiff_t offset, length, distance, count;
  };
  std::vector<Loop> loops_;
};

}  // namespace messages
