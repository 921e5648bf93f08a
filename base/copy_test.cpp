// SPDX-License-Identifier: Apache-2.0
#include "base/copy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace bestride {
namespace {

/// Any alignment of both ends, all distances modulo a page around zero; nothing else is written.
TEST(Copy, MovesEveryByteAndNoOther) {
  std::mt19937_64 random(1);
  std::vector<unsigned char> source(5 * 4096), destination(source.size()), expected;
  for (unsigned char& byte : source) byte = static_cast<unsigned char>(random());
  for (int time = 0; time < 3000; ++time) {
    const std::size_t bytes = time % 3 ? random() % 12'000 : 4090 + random() % 80;
    const std::size_t from = random() % 4096;
    const auto page = reinterpret_cast<std::uintptr_t>(destination.data()) % 4096;
    const auto aligned = (reinterpret_cast<std::uintptr_t>(source.data()) + from + 4096 - page) % 4096;
    const std::size_t to = (aligned + 4096 + random() % 160 - 80) % 4096;
    for (unsigned char& byte : destination) byte = 0xEE;
    expected = destination;
    std::memcpy(expected.data() + to, source.data() + from, bytes);
    copy_bytes(destination.data() + to, source.data() + from, bytes);
    ASSERT_EQ(expected, destination) << bytes << ' ' << from << ' ' << to;
  }
}

}  // namespace
}  // namespace bestride
