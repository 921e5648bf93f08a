// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/slot_stores.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "datatype/build.hpp"

namespace bestride::inline collectives {
namespace {

int pieces_until_sample(StoreChoice& choice) {
  int pieces = 1;
  while (!choice.samples()) ++pieces;
  return pieces;
}

TEST(StoreChoice, SlowSamplesInARowChangeItAndFastOnesChangeItBack) {
  StoreChoice choice;
  EXPECT_FALSE(choice.bypasses());
  for (const bool slow : {true, false}) {
    const int interval = slow ? StoreChoice::ordinary_interval : StoreChoice::bypassing_interval;
    EXPECT_EQ(pieces_until_sample(choice), interval);
    for (int i = 0; i < StoreChoice::samples_to_change; ++i) {
      EXPECT_EQ(choice.bypasses(), !slow);
      choice.sampled(slow);
      if (i + 1 < StoreChoice::samples_to_change) {
        EXPECT_EQ(pieces_until_sample(choice), 1) << "a contradiction is checked at once";
      }
    }
    EXPECT_EQ(choice.bypasses(), slow);
  }
}

TEST(StoreChoice, SamplesThatContradictNowAndThenChangeNothing) {
  StoreChoice choice;
  for (int i = 0; i < 100; ++i) {
    choice.sampled(i % StoreChoice::samples_to_change != 0);
    EXPECT_FALSE(choice.bypasses());
  }
}

/// The bytes are those of an ordinary read, whatever the stores, the layout and the alignment, and no other byte of the
/// slot is written.
class SlotStoresBytes : public testing::TestWithParam<std::int64_t> {};

TEST_P(SlotStoresBytes, AreThoseOfTheOperand) {
  std::mt19937_64 random(7);
  const Packer strided(intern(*make_repeat(*make_block(0, 3), 30'000, 5)));
  std::vector<std::byte> user(200'000), expected, slot(120'000);
  for (std::byte& byte : user) byte = static_cast<std::byte>(random());
  SlotStores stores(GetParam());
  for (int i = 0; i < 600; ++i) {
    const Operand from = i % 2 ? Operand(user.data() + random() % 100, 100'000) : Operand(user.data(), strided);
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(from.bytes()));
    const auto most = static_cast<std::uint64_t>(from.bytes() - first);
    const std::int64_t last =
        first + static_cast<std::int64_t>(random() % (i % 3 ? most : std::min<std::uint64_t>(most, 5000)));
    const std::size_t at = random() % 70;
    std::fill(slot.begin(), slot.end(), std::byte{0x5a});
    expected = slot;
    from.read(expected.data() + at, first, last);
    stores.fill(slot.data() + at, from, {first, last});
    stores.flush();
    ASSERT_EQ(std::memcmp(slot.data(), expected.data(), slot.size()), 0) << i << ": " << first << " to " << last;
  }
}
INSTANTIATE_TEST_SUITE_P(All, SlotStoresBytes, testing::Values(-1, 0, 1, 4096));

TEST(SlotStores, AResultIsComputedInTheSlotUnlessItIsWrittenPastTheCaches) {
  std::vector<std::byte> slot(8192), data(8192, std::byte{3});
  SlotStores ordinary(0), bypassing(1);
  EXPECT_EQ(ordinary.place(slot.data(), 8192), slot.data());
  EXPECT_EQ(bypassing.place(slot.data(), 8192), nullptr);
  EXPECT_EQ(bypassing.place(slot.data(), SlotStores::least_bytes - 1), slot.data());
  bypassing.keep(slot.data(), data.data(), 8192);
  bypassing.flush();
  EXPECT_EQ(slot, data);
}

}  // namespace
}  // namespace bestride::inline collectives
