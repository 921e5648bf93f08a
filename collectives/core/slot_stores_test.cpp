// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/slot_stores.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
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

/// Instead of a size: the first 8 KiB of each piece are sampled, and what follows is written past the caches.
constexpr std::int64_t bypassing_sampled = -2;

/// The bytes are those of an ordinary read, whatever the stores, the layout and the alignment, and no other byte of the
/// slot is written.
class SlotStoresBytes : public testing::TestWithParam<std::int64_t> {
 protected:
  SlotStores& stores() {
    if (stores_ && GetParam() != bypassing_sampled) return *stores_;
    StoreChoice choice;
    for (const bool slow : {true, true, true, false}) choice.sampled(slow);
    return GetParam() == bypassing_sampled ? stores_.emplace(-1, choice) : stores_.emplace(GetParam());
  }

 private:
  std::optional<SlotStores> stores_;
};

TEST_P(SlotStoresBytes, AreThoseOfTheOperand) {
  std::mt19937_64 random(7);
  const Packer strided(intern(*make_repeat(*make_block(0, 3), 30'000, 5)));
  std::vector<std::byte> user(200'000), expected, slot(120'000);
  for (std::byte& byte : user) byte = static_cast<std::byte>(random());
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
    SlotStores& stores = this->stores();
    stores.fill(slot.data() + at, from, {first, last});
    stores.flush();
    ASSERT_EQ(std::memcmp(slot.data(), expected.data(), slot.size()), 0) << i << ": " << first << " to " << last;
  }
}

/// Blocks of a node's vector: side by side, with gaps, or as a plain address.
TEST_P(SlotStoresBytes, AreThoseOfANodesVector) {
  constexpr int ranks = 3;
  std::mt19937_64 random(8);
  const Packer strided(intern(*make_repeat(*make_block(0, 5), 3000, 7)));
  std::vector<std::byte> user(ranks * 30'000), expected, slot(60'000);
  for (std::byte& byte : user) byte = static_cast<std::byte>(random());
  const Topology topology(std::vector<int>{1, 0, 0, 0});
  class Blocks final : public Operands {
   public:
    Blocks(std::byte* user, const Packer* packer) : user_(user), packer_(packer) {}
    Operand of(int rank) const noexcept override {
      if (rank == 0) return {};
      std::byte* const block = user_ + (rank - 1) * (packer_ ? 30'000 : 15'000);
      return packer_ ? Operand(block, *packer_) : Operand(block, 15'000);
    }
    std::int64_t bytes(int rank) const noexcept override { return rank == 0 ? 0 : 15'000; }

   private:
    std::byte* const user_;
    const Packer* const packer_;
  };
  const Blocks together(user.data(), nullptr), apart(user.data(), &strided);
  const RankBlocks vectors[] = {{topology, together}, {topology, apart}};
  const int node = topology.node_of(1);
  for (int i = 0; i < 600; ++i) {
    const RankBlocks& from = vectors[i % 2];
    ASSERT_EQ(from.bytes(node), 45'000);
    const auto first = static_cast<std::int64_t>(random() % 45'000);
    const auto last = first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(45'000 - first));
    const std::size_t at = random() % 70;
    std::fill(slot.begin(), slot.end(), std::byte{0x5a});
    expected = slot;
    from.read(node, {first, last}, expected.data() + at);
    SlotStores& stores = this->stores();
    if (i % 4 == 0)
      stores.fill(slot.data() + at, user.data() + first, last - first);
    else
      stores.fill(slot.data() + at, from, node, {first, last});
    stores.flush();
    ASSERT_EQ(slot, expected) << i << ": " << first << " to " << last;
  }
}
INSTANTIATE_TEST_SUITE_P(All, SlotStoresBytes, testing::Values(bypassing_sampled, -1, 0, 1, 4096));

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
