// SPDX-License-Identifier: Apache-2.0
// Deltas of all lengths and kinds of changes, on every instruction set: applying one gives the newer content; its bytes
// equal those of the scalar kernels and are within the bound; damaged deltas are harmless. The memory ends at an
// inaccessible page.
#include "kernels/delta/delta.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/test_memory.hpp"
#include "tests/support/random.hpp"

namespace bestride::inline kernels {
namespace {

using test::Guarded;
using test::Random;

constexpr std::int64_t chunk = 128, group = 8192;

std::vector<Isa> all_isas() {
  std::vector<Isa> all;
  for (int isa = 0; isa <= static_cast<int>(widest_isa()); ++isa) all.push_back(static_cast<Isa>(isa));
  return all;
}

enum class Change { none, few, tenth, half, all, cluster, one_a_chunk, nearly_all_chunks, by_turns, last_byte };
constexpr Change all_changes[] = {Change::none,     Change::few,      Change::tenth,       Change::half,
                                  Change::all,      Change::cluster,  Change::one_a_chunk, Change::nearly_all_chunks,
                                  Change::by_turns, Change::last_byte};

void fill(const Guarded& memory, Random& random) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<unsigned char>(random.bits());
}

void copy(const Guarded& to, const Guarded& from) {
  if (from.size() > 0) std::memcpy(to.data(), from.data(), from.size());
}

void change(const Guarded& content, Change kind, Random& random) {
  const auto bytes = static_cast<std::int64_t>(content.size());
  const auto touch = [&](std::int64_t byte) {
    if (byte >= 0 && byte < bytes)
      content.data()[byte] = static_cast<unsigned char>(content.data()[byte] + random.between(1, 255));
  };
  const auto some = [&](int per_mille) {
    for (std::int64_t byte = 0; byte < bytes; byte += 2)
      if (random.between(0, 999) < per_mille) touch(byte + random.between(0, 1));
  };
  switch (kind) {
    case Change::none: break;
    case Change::few: some(2); break;
    case Change::tenth: some(100); break;
    case Change::half: some(500); break;
    case Change::all: some(1000); break;
    case Change::cluster:
      for (std::int64_t byte = bytes / 3; byte < bytes / 2; ++byte) touch(byte);
      break;
    case Change::one_a_chunk:
      for (std::int64_t at = 0; at < bytes; at += chunk) touch(at + random.between(0, chunk - 1));
      break;
    case Change::nearly_all_chunks:  // one to three chunks of each group are left: just above and below the limit of a
                                     // sparse group
      for (std::int64_t at = 0; at < bytes; at += chunk)
        if (at % group / chunk >= 1 + at / group % 3) touch(at + random.between(0, chunk - 1));
      break;
    case Change::by_turns:  // alternately all chunks of a group, and all but one: sparse groups would save nothing and
                            // cost a run each
      for (std::int64_t at = 0; at < bytes; at += chunk)
        if (at / group % 2 == 0 || at % group / chunk < 63) touch(at + 64);
      break;
    case Change::last_byte: touch(bytes - 1); break;
  }
}

std::int64_t changed_words(const Guarded& a, const Guarded& b) {
  std::int64_t words = 0;
  for (std::size_t i = 0; i < a.size(); i += 2)
    words += a.data()[i] != b.data()[i] || (i + 1 < a.size() && a.data()[i + 1] != b.data()[i + 1]);
  return words;
}

bool same(const Guarded& a, const Guarded& b) {
  return delta::equal(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

void check(std::int64_t bytes, Change kind, Random& random) {
  SCOPED_TRACE("change " + std::to_string(static_cast<int>(kind)) + " of " + std::to_string(bytes) + " bytes");
  const auto side = random.chance(50) ? Guarded::Side::before_wall : Guarded::Side::after_wall;
  const std::int64_t slack = random.chance(50) ? 0 : random.between(1, 63);
  const Guarded older(bytes, side, slack), newer(bytes, side);
  fill(older, random);
  copy(newer, older);
  change(newer, kind, random);
  const std::int64_t words = changed_words(older, newer), most = bytes / 16 + 2 * words + 16;
  const Guarded output(most, Guarded::Side::before_wall);
  const std::int64_t size = delta::encode(older.data(), newer.data(), bytes, output.data(), most, Isa::scalar);
  ASSERT_GE(size, 0) << "more than " << most << " bytes for " << words << " words";
  ASSERT_LE(size, delta::max_encoded_bytes(bytes));
  if (words == 0) {
    ASSERT_LE(size, 4);
  }
  for (const Isa isa : all_isas()) {
    SCOPED_TRACE(name(isa));
    const Guarded exact(size, Guarded::Side::before_wall), content(bytes, side, slack);
    ASSERT_EQ(delta::encode(older.data(), newer.data(), bytes, exact.data(), size, isa), size);
    ASSERT_TRUE(delta::equal(exact.data(), output.data(), size));
    copy(content, older);
    ASSERT_TRUE(delta::apply(exact.data(), size, content.data(), bytes, isa));
    ASSERT_TRUE(same(content, newer));
    // With output to spare the bytes are the same, and the kernels may write after the end.
    const Guarded wide(most + 20000, Guarded::Side::after_wall);
    ASSERT_EQ(delta::encode(older.data(), newer.data(), bytes, wide.data(), most + 20000, isa), size);
    ASSERT_TRUE(delta::equal(wide.data(), output.data(), size));
    copy(content, older);
    ASSERT_TRUE(delta::apply(wide.data(), size, content.data(), bytes, isa));
    ASSERT_TRUE(same(content, newer));
    for (int i = 0; i < 4 && size > 0; ++i) {
      const std::int64_t limit = i == 0 ? size - 1 : random.between(0, size - 1);
      const Guarded small(limit, Guarded::Side::before_wall);
      ASSERT_EQ(delta::encode(older.data(), newer.data(), bytes, small.data(), limit, isa), delta::dense);
      ASSERT_FALSE(delta::apply(exact.data(), limit, content.data(), bytes, isa)) << "cut to " << limit;
    }
  }
}

TEST(Delta, RestoresTheNewContentWithinItsSizeBound) {
  Random random(1);
  for (const Change kind : all_changes)
    for (const std::int64_t bytes :
         {0,    1,    2,    3,    63,   64,   126,  127,  128,   129,   130,   255,   256,   257,
          1000, 8063, 8064, 8065, 8191, 8192, 8193, 8320, 16384, 16500, 24577, 40000, 65536, 100001}) {
      check(bytes, kind, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(Delta, IsSmallForClusteredChanges) {
  Random random(2);
  const std::int64_t bytes = std::int64_t{1} << 20;
  const Guarded older(bytes, Guarded::Side::before_wall), newer(bytes, Guarded::Side::before_wall);
  fill(older, random);
  copy(newer, older);
  for (std::int64_t byte = 300000; byte < 300000 + 4096; ++byte) newer.data()[byte] ^= 1;
  const Guarded output(bytes, Guarded::Side::before_wall);
  // 4096 bytes of words, a mask for each of 33 chunks, maps of at most 2 groups, 3 runs.
  EXPECT_LE(delta::encode(older.data(), newer.data(), bytes, output.data(), bytes), 4096 + 33 * 8 + 2 * 8 + 3 * 4);
  EXPECT_EQ(delta::encode(older.data(), older.data(), bytes, output.data(), bytes), 4);
}

/// For arbitrary bytes: no access outside the buffers (guard pages), and the same result and content on every
/// instruction set.
TEST(Delta, DamagedDeltasDoNoHarm) {
  Random random(3);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::int64_t bytes = random.pick(std::vector<std::int64_t>{1, 127, 129, 8191, 8192, 12345, 30000});
    const Guarded older(bytes, Guarded::Side::before_wall), newer(bytes, Guarded::Side::before_wall);
    fill(older, random);
    copy(newer, older);
    change(newer, random.pick(all_changes), random);
    std::vector<unsigned char> good(static_cast<std::size_t>(delta::max_encoded_bytes(bytes)));
    const std::int64_t size =
        delta::encode(older.data(), newer.data(), bytes, good.data(), static_cast<std::int64_t>(good.size()));
    ASSERT_GE(size, 0);
    const bool only_noise = random.chance(10);
    const Guarded bad(size + (random.chance(10) ? 1 : 0), Guarded::Side::before_wall);
    for (std::size_t k = 0; k < bad.size(); ++k)
      bad.data()[k] = static_cast<unsigned char>(only_noise ? random.bits() : good[k]);
    if (!only_noise && size > 0)
      for (std::int64_t flips = random.between(1, 4); flips > 0; --flips)
        bad.data()[random.chance(50) ? random.between(0, std::min<std::int64_t>(size, 16) - 1)
                                     : random.between(0, size - 1)] ^=
            static_cast<unsigned char>(1 << random.between(0, 7));
    const Guarded expected(bytes, Guarded::Side::before_wall);
    copy(expected, older);
    const bool fits =
        delta::apply(bad.data(), static_cast<std::int64_t>(bad.size()), expected.data(), bytes, Isa::scalar);
    refused += !fits;
    for (const Isa isa : all_isas()) {
      const Guarded content(bytes, Guarded::Side::before_wall);
      copy(content, older);
      ASSERT_EQ(delta::apply(bad.data(), static_cast<std::int64_t>(bad.size()), content.data(), bytes, isa), fits);
      ASSERT_TRUE(same(content, expected));
    }
  }
  EXPECT_GT(refused, 500);
}

/// The stream as delta.hpp describes it, and invalid streams.
TEST(Delta, StreamMatchesItsDescription) {
  std::vector<unsigned char> older(group + 200, 7), newer = older;  // one whole group; two chunks, the last of 36 words
  newer[chunk + 4] = 1;                                             // word 2 of chunk 1
  newer[group + 199] = 2;                                           // the last word, 35 of its chunk
  std::vector<unsigned char> stream(100);
  stream.resize(static_cast<std::size_t>(
      delta::encode(older.data(), newer.data(), static_cast<std::int64_t>(older.size()), stream.data(), 100)));
  const std::vector<unsigned char> expected = {
      1, 0, 0, 0x40, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 7,   // sparse, map, mask, word
      1, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 7, 2};  // full, two masks, word
  ASSERT_EQ(stream, expected);

  std::vector<unsigned char> content;
  const auto applies = [&](const std::vector<unsigned char>& bytes) {
    content = older;
    return delta::apply(bytes.data(), static_cast<std::int64_t>(bytes.size()), content.data(),
                        static_cast<std::int64_t>(content.size()));
  };
  EXPECT_TRUE(applies(expected));
  EXPECT_EQ(content, newer);
  struct {
    std::size_t at;
    unsigned char value;
    const char* what;
  } const wrongs[] = {{3, 0xc0, "a kind that does not exist"}, {0, 3, "more groups than exist"},
                      {0, 0, "a run without groups"},          {4, 6, "a missing mask"},
                      {38, 0x10, "a word after the end"},      {12, 12, "one word too many"}};
  for (const auto& wrong : wrongs) {
    std::vector<unsigned char> bytes = expected;
    bytes[wrong.at] = wrong.value;
    EXPECT_FALSE(applies(bytes)) << wrong.what;
  }
  std::vector<unsigned char> longer = expected;
  longer.push_back(0);
  EXPECT_FALSE(applies(longer));
  // A sparse last group with a chunk that does not exist, including the mask for it.
  EXPECT_FALSE(applies({1, 0, 0, 0, 1, 0, 0, 0x40, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Delta, EqualComparesBits) {
  const float zero = 0, minus_zero = -0.0f;
  EXPECT_TRUE(delta::equal(&zero, &zero, 4));
  EXPECT_FALSE(delta::equal(&zero, &minus_zero, 4));
  EXPECT_TRUE(delta::equal(nullptr, nullptr, 0));
}

}  // namespace
}  // namespace bestride::inline kernels
