// SPDX-License-Identifier: Apache-2.0
#include "by_hand.hpp"

#include <cstring>
#include <type_traits>

namespace messages {
namespace {

/// copy(packed, data, length) for each block; the length is a constant where it is short.
template <class Packed, class Data, class Loops, class Copy>
void run(Packed* packed, Data* data, const Loops& loops, const Copy& copy) {
  for (const auto& loop : loops) {
    Data* at = data + loop.offset;
    const auto all = [&](auto length) {
      for (std::ptrdiff_t i = 0; i < loop.count; ++i, at += loop.distance, packed += length) copy(packed, at, length);
    };
    switch (loop.length) {
      case 4: all(std::integral_constant<std::ptrdiff_t, 4>()); break;
      case 8: all(std::integral_constant<std::ptrdiff_t, 8>()); break;
      case 16: all(std::integral_constant<std::ptrdiff_t, 16>()); break;
      case 32: all(std::integral_constant<std::ptrdiff_t, 32>()); break;
      case 64: all(std::integral_constant<std::ptrdiff_t, 64>()); break;
      default: all(loop.length);
    }
  }
}

}  // namespace

ByHand::ByHand(const Shape& shape, int count) {
  for (int item = 0; item < count; ++item)
    for (const Block& block : shape.blocks()) {
      const std::ptrdiff_t offset = item * shape.extent() + block.offset;
      if (!loops_.empty() && loops_.back().length == block.length) {
        Loop& last = loops_.back();
        if (last.count == 1) last.distance = offset - last.offset;
        if (offset == last.offset + last.count * last.distance) {
          ++last.count;
          continue;
        }
      }
      loops_.push_back({offset, block.length, 0, 1});
    }
}

void ByHand::pack(unsigned char* packed, const unsigned char* data) const {
  run(packed, data, loops_, [](unsigned char* to, const unsigned char* from, auto length) {
    std::memcpy(to, from, static_cast<std::size_t>(length));
  });
}

void ByHand::unpack(unsigned char* data, const unsigned char* packed) const {
  run(packed, data, loops_, [](const unsigned char* from, unsigned char* to, auto length) {
    std::memcpy(to, from, static_cast<std::size_t>(length));
  });
}

}  // namespace messages
