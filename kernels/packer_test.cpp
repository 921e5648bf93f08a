// SPDX-License-Identifier: Apache-2.0
// Every kernel against the reference: random layouts x every instruction set and family forced x misaligned bases, in
// memory that ends at an inaccessible page. Ranges cut at random reassemble exactly; gap bytes keep their canary.
#include "kernels/packer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "kernels/test_memory.hpp"
#include "kernels/test_trees.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline kernels {
namespace {

using test::Guarded;
using test::Trees;

/// Different bytes for each `seed`.
void fill(void* memory, std::size_t size, unsigned seed) {
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t x = (at + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    const std::uint64_t word = x ^ x >> 29;
    std::memcpy(static_cast<char*>(memory) + at, &word, std::min<std::size_t>(8, size - at));
  }
}
void fill(const Guarded& memory, unsigned seed) { fill(memory.data(), memory.size(), seed); }

bool equal(const Guarded& a, const Guarded& b) { return std::memcmp(a.data(), b.data(), a.size()) == 0; }

std::vector<PackerOptions> all_options() {
  std::vector<PackerOptions> all;
  for (int isa = 0; isa <= static_cast<int>(widest_isa()); ++isa)
    for (int family = 0; family <= static_cast<int>(KernelFamily::streaming); ++family) {
      if (family == static_cast<int>(KernelFamily::reference)) continue;
      all.push_back({static_cast<Isa>(isa), static_cast<KernelFamily>(family), -1});
    }
  return all;
}

/// The buffer address for which the layout's bytes start at `memory`.
void* base_of(const Layout& layout, const Guarded& memory) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory.data()) -
                                 static_cast<std::uintptr_t>(layout.low()));
}

void check(const LayoutPtr& layout, const PackerOptions& options, Trees& draw) {
  const Packer oracle(layout, {Isa::scalar, KernelFamily::reference, 0});
  const Packer packer(layout, options);
  SCOPED_TRACE("layout " + layout->text() + " as " + packer.text() + " on " + std::string(name(options.isa)));
  const auto side = draw.chance(0.5) ? Guarded::Side::before_wall : Guarded::Side::after_wall;
  const auto packed_side = draw.chance(0.5) ? Guarded::Side::before_wall : Guarded::Side::after_wall;
  const std::int64_t span = layout->high() - layout->low();
  const std::int64_t slack = draw.chance(0.5) ? 0 : draw.between(1, 63);
  const std::int64_t size = layout->size();

  Guarded user(span, side, slack), user_after(span, side, slack), expected_user(span, side, slack);
  Guarded packed(size, packed_side, slack), expected(size, packed_side, slack);
  fill(user, 1);
  fill(user_after, 1);
  oracle.pack(expected.data(), base_of(*layout, user));
  fill(packed, 2);
  packer.pack(packed.data(), base_of(*layout, user));
  ASSERT_TRUE(equal(packed, expected)) << "pack";
  ASSERT_TRUE(equal(user, user_after)) << "pack wrote its source";

  fill(packed, 3);
  fill(expected, 3);
  fill(expected_user, 1);
  oracle.unpack(base_of(*layout, expected_user), packed.data());
  packer.unpack(base_of(*layout, user), packed.data());
  ASSERT_TRUE(equal(user, expected_user)) << "unpack";
  ASSERT_TRUE(equal(packed, expected)) << "unpack wrote its source";

  // Ranges: arbitrary cuts, each range in a buffer of exactly its size.
  fill(user, 4);
  fill(user_after, 5);
  fill(expected_user, 5);
  oracle.pack(expected.data(), base_of(*layout, user));
  oracle.unpack(base_of(*layout, expected_user), expected.data());
  for (std::int64_t first = 0; first < size;) {
    std::int64_t last = draw.chance(0.5) ? std::min(size, first + draw.between(1, 100)) : draw.between(first + 1, size);
    Guarded part(last - first, packed_side);
    packer.pack_range(part.data(), base_of(*layout, user), first, last);
    ASSERT_EQ(0, std::memcmp(part.data(), expected.data() + first, part.size()))
        << "pack_range " << first << ".." << last;
    packer.unpack_range(base_of(*layout, user_after), part.data(), first, last);
    first = last;
  }
  ASSERT_TRUE(equal(user_after, expected_user)) << "unpack_range";
}

class RandomLayouts : public ::testing::TestWithParam<int> {};

TEST_P(RandomLayouts, EveryKernelEqualsTheOracle) {
  Trees draw(static_cast<std::uint64_t>(GetParam()));
  const std::vector<PackerOptions> all = all_options();
  for (int i = 0; i < 60; ++i) {
    const LayoutPtr layout = draw.draw(i % 8 == 0 ? 40000 : 3000);
    for (const PackerOptions& options : all) {
      check(layout, options, draw);
      if (HasFatalFailure()) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLayouts, ::testing::Range(1, 1 + test::repetitions(12)));

/// Layouts that random generation produces too rarely, each at sizes around the number of bytes that kernels process at
/// a time.
std::vector<LayoutPtr> particular_layouts() {
  std::vector<LayoutPtr> all;
  const auto add = [&](const Built& built) { all.push_back(intern(*built)); };
  const auto block = [](std::int64_t size) { return *make_block(0, size); };
  for (const std::int64_t width : {1, 2, 4, 8, 16, 32, 64})
    for (const std::int64_t count : {2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 127}) {
      add(make_repeat(block(width), count, 2 * width));  // permutes and groups
      add(make_repeat(block(width), count, 3 * width));
      add(make_repeat(block(width), count, 512));  // paced stores
      add(make_repeat(block(width), count, -1024));
      add(make_repeat(*make_repeat(block(width), 9, 2 * width), count, 30 * width));
    }
  for (const std::int64_t width : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48})
    for (const std::int64_t rows : {2, 7, 16, 21}) {
      const std::int64_t line = (rows * width + 63) / 64 * 64;
      add(make_repeat(*make_repeat(block(width), 19, line), rows, width));  // transposes along lines
      add(make_repeat(*make_repeat(block(width), 64, -line - 8), rows, width));
    }
  for (const std::int64_t width : {256, 447, 448, 449, 2047, 2048, 5000}) add(make_repeat(block(width), 5, width + 24));
  add(make_repeat(block(8), 100, 0));  // the same bytes written a hundred times
  add(make_repeat(block(12), 50, 5));  // every block overlaps the next one
  add(make_repeat(block(100), 20, -30));
  add(make_repeat(*make_repeat(block(4), 10, 2), 10, 3));
  return all;
}

TEST(Packer, SelectedLayoutsEqualTheOracle) {
  Trees draw(99);
  const std::vector<PackerOptions> all = all_options();
  for (const LayoutPtr& layout : particular_layouts())
    for (const PackerOptions& options : all) {
      check(layout, options, draw);
      if (HasFatalFailure()) return;
    }
}

TEST(Packer, EmptyLayout) {
  const LayoutPtr empty = intern(Placed{});
  for (const PackerOptions& options : all_options()) {
    const Packer packer(empty, options);
    packer.pack(nullptr, nullptr);
    packer.unpack(nullptr, nullptr);
    packer.pack_range(nullptr, nullptr, 0, 0);
    EXPECT_EQ(packer.size(), 0);
    EXPECT_EQ(packer.text(), "nothing");
  }
}

TEST(Packer, AbsoluteAddressesFromANullBase) {
  std::vector<char> user(4096), packed(96), expected;
  fill(user.data(), user.size(), 1);
  const std::int64_t at = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(user.data()));
  const Built layout =
      make_sequence(std::vector<Placed>{*make_repeat(*make_block(at, 8), 10, 24), *make_block(at + 1000, 16)});
  for (int i = 0; i < 10; ++i) expected.insert(expected.end(), user.begin() + 24 * i, user.begin() + 24 * i + 8);
  expected.insert(expected.end(), user.begin() + 1000, user.begin() + 1016);
  const Packer packer(intern(*layout));
  packer.pack(packed.data(), nullptr);
  EXPECT_EQ(packed, expected);
  std::fill(user.begin(), user.end(), 0);
  packer.unpack(nullptr, packed.data());
  EXPECT_EQ(std::memcmp(user.data() + 24, packed.data() + 8, 8), 0);
  EXPECT_EQ(user[8], 0);
}

TEST(Packer, OffsetsBeyondThirtyTwoBits) {
  const std::size_t span = (std::size_t{9} << 30) + 64;
  void* mapped = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "no 9 GiB of addresses";
  auto* user = static_cast<unsigned char*>(mapped);
  std::vector<std::int64_t> offsets, lengths;
  for (std::int64_t i = 0; i < 12; ++i) {
    offsets.push_back((i * 5 % 12) * ((std::int64_t{9} << 30) / 12) + i * i);
    lengths.push_back(i % 3 == 2 ? 12 : 4);
  }
  for (const bool uniform : {true, false}) {
    const LayoutPtr layout = intern(*make_blocks(offsets, uniform ? std::vector<std::int64_t>(12, 8) : lengths));
    for (const PackerOptions& options : all_options()) {
      const Packer packer(layout, options), oracle(layout, {Isa::scalar, KernelFamily::reference, 0});
      std::vector<unsigned char> sent(static_cast<std::size_t>(layout->size())), back(sent.size()),
          expected(sent.size());
      fill(sent.data(), sent.size(), static_cast<unsigned>(options.family));
      packer.unpack(user, sent.data());
      oracle.pack(expected.data(), user);
      packer.pack(back.data(), user);
      ASSERT_EQ(sent, expected) << packer.text();
      ASSERT_EQ(sent, back) << packer.text();
    }
  }
  munmap(mapped, span);
}

TEST(Packer, StreamingThreshold) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 16), 1000, 48));
  EXPECT_NE(Packer(layout, {widest_isa(), KernelFamily::automatic, 16000}).text().find("streaming"),
            widest_isa() == Isa::avx512 ? std::string::npos : 0);
  EXPECT_EQ(Packer(layout, {widest_isa(), KernelFamily::automatic, 16001}).text().find("streaming"), std::string::npos);
  EXPECT_EQ(Packer(layout, {widest_isa(), KernelFamily::automatic, 0}).text().find("streaming"), std::string::npos);
}

TEST(Packer, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(KernelFamily::streaming); ++i) {
    KernelFamily family = KernelFamily::automatic;
    EXPECT_TRUE(parse(name(static_cast<KernelFamily>(i)), &family));
    EXPECT_EQ(family, static_cast<KernelFamily>(i));
  }
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    Isa read = Isa::scalar;
    EXPECT_TRUE(parse(name(isa), &read));
    EXPECT_EQ(read, isa);
  }
  KernelFamily family = KernelFamily::word;
  EXPECT_FALSE(parse("words", &family));
  EXPECT_EQ(family, KernelFamily::word);
}

/// A forced family is really used for the shapes it supports. Otherwise the comparisons above would test nothing.
TEST(Packer, ForcedFamiliesAreUsed) {
  if (widest_isa() != Isa::avx512) GTEST_SKIP() << "names are those of AVX-512";
  const auto text = [](const Built& built, KernelFamily family) {
    return Packer(intern(*built), {Isa::avx512, family, 0}).text();
  };
  const Built words = make_repeat(*make_block(0, 8), 50, 16);
  const Built twelves = make_repeat(*make_block(0, 12), 50, 24);
  const Built wide_blocks = make_repeat(*make_block(0, 300), 50, 400);
  const Built records = make_repeat(*make_sequence(std::vector<Placed>{*make_block(0, 8), *make_block(12, 5)}), 50, 32);
  const Built across = make_repeat(*make_repeat(*make_block(0, 16), 20, 1024), 20, 16);
  const Built listed = make_blocks(std::vector<std::int64_t>{0, 50, 20, 90, 300, 130, 111, 777, 400, 600, 500},
                                   std::vector<std::int64_t>(11, 8));
  using enum KernelFamily;
  EXPECT_EQ(text(words, word).find("word8 "), 0u) << text(words, word);
  EXPECT_EQ(text(words, block_copy).find("block_copy"), 0u);
  EXPECT_EQ(text(words, gather).find("gather8.permute"), 0u);
  EXPECT_EQ(text(words, streaming).find("streaming8"), 0u);
  EXPECT_EQ(text(twelves, overlap).find("overlap8 "), 0u);
  EXPECT_EQ(text(twelves, record).find("record "), 0u);
  EXPECT_EQ(text(wide_blocks, wide).find("wide "), 0u);
  EXPECT_EQ(text(records, automatic).find("record.fields"), 0u) << text(records, automatic);
  EXPECT_EQ(text(records, record).find("record "), 0u);
  EXPECT_EQ(text(across, transpose).find("transpose16"), 0u);
  EXPECT_EQ(text(listed, list).find("list8"), 0u) << text(listed, list);
  EXPECT_EQ(text(words, reference), "reference");
}

}  // namespace
}  // namespace bestride::inline kernels
