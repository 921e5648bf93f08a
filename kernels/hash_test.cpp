// SPDX-License-Identifier: Apache-2.0
#include "kernels/hash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace bestride::inline kernels {
namespace {

TEST(ContentHash, IsXxh3) {
  EXPECT_EQ(content_hash(nullptr, 0), 0x2d06800538d394c2u);  // xxHash specification: XXH3_64bits of an empty input
}

TEST(ContentHash, DependsOnContentNotAddress) {
  std::vector<unsigned char> memory(5000);
  for (std::size_t i = 0; i < 4000; ++i) memory[i] = static_cast<unsigned char>(i * i >> 3);
  for (const std::int64_t bytes : {1, 7, 16, 100, 240, 241, 1024, 4000}) {
    const std::vector<unsigned char> content(memory.begin(), memory.begin() + bytes);
    const std::uint64_t hash = content_hash(content.data(), bytes);
    std::vector<unsigned char> moved(static_cast<std::size_t>(bytes) + 3);
    std::memcpy(moved.data() + 3, content.data(), content.size());
    EXPECT_EQ(content_hash(moved.data() + 3, bytes), hash);
    EXPECT_NE(content_hash(content.data(), bytes, 1), hash);
  }
}

TEST(ContentHash, DependsOnEveryBitAndTheLength) {
  std::vector<unsigned char> content(600);
  std::set<std::uint64_t> seen;
  for (std::int64_t bytes = 0; bytes <= 600; ++bytes) seen.insert(content_hash(content.data(), bytes));
  for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
    content[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    seen.insert(content_hash(content.data(), 600));
    content[bit / 8] = 0;
  }
  EXPECT_EQ(seen.size(), 601u + 4800u);
}

}  // namespace
}  // namespace bestride::inline kernels
