// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/amounts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "telemetry/record/reader.hpp"
#include "telemetry/record/sample_record.hpp"

namespace bestride::inline telemetry {
namespace {

using Values = std::vector<std::uint32_t>;

class Amounts : public testing::Test {
 protected:
  Amounts() {
    char name[] = "/tmp/bestride-amounts-XXXXXX";
    folder_ = mkdtemp(name);
    begin_record(*record_, getpid(), own_start_time(), 3, 8);
  }
  ~Amounts() override { std::filesystem::remove_all(folder_); }
  RankSnapshot read() {
    write_file(folder_ + "/1.record", record_.bytes());
    auto rank = read_record(folder_ + "/1.record");
    EXPECT_TRUE(rank);
    return rank ? std::move(*rank) : RankSnapshot{};
  }
  std::uint32_t world() const { return communicator_id(0, record_->communicators[0].kind.get() >> 8); }

  std::string folder_;
  SampleRecord record_;
};

TEST_F(Amounts, AreReadAsTheyWereWritten) {
  EXPECT_TRUE(read().amounts.empty());
  {
    AmountsWriter writer(*record_, world(), 7);
    writer.add(true, 3, [](std::size_t i) { return std::uint64_t{10} + i; });
    writer.add(false, 2, [](std::size_t) { return std::uint64_t{1} << 40; });
    EXPECT_TRUE(read().amounts.empty()) << "they are being written";
  }
  const auto amounts = read().amounts;
  ASSERT_EQ(amounts.size(), 1u);
  EXPECT_EQ(amounts[0].ordinal, 7u);
  EXPECT_EQ(amounts[0].communicator, 0u);
  EXPECT_EQ(amounts[0].sent, (Values{10, 11, 12}));
  EXPECT_EQ(amounts[0].received, (Values{unknown_amount, unknown_amount}));
}

TEST_F(Amounts, ThatDoNotFitAreLeftOut) {
  {
    AmountsWriter writer(*record_, world(), 8);
    writer.add(true, max_amounts, [](std::size_t) { return std::uint64_t{1}; });
    writer.add(false, 1, [](std::size_t) { return std::uint64_t{1}; });
  }
  EXPECT_TRUE(read().amounts.empty());
}

/// A rank that has left a call may be in the next one when another rank finds an error in it.
TEST_F(Amounts, OfTheLastTwoCalls) {
  for (const std::uint32_t ordinal : {7u, 8u, 9u, 10u, 11u}) {
    AmountsWriter(*record_, world(), ordinal).add(true, 1, [=](std::size_t) { return std::uint64_t{ordinal}; });
    const auto amounts = read().amounts;
    ASSERT_EQ(amounts.size(), ordinal == 7 ? 1u : 2u);
    const std::size_t newer = amounts.back().ordinal == ordinal ? amounts.size() - 1 : 0;
    EXPECT_EQ(amounts[newer].ordinal, ordinal);
    EXPECT_EQ(amounts[newer].sent, Values{ordinal});
    EXPECT_EQ(amounts[amounts.size() - 1 - newer].ordinal, std::max(ordinal - 1, 7u));
  }
}

TEST_F(Amounts, OfTwoThreadsAtATime) {
  {
    AmountsWriter first(*record_, world(), 7), second(*record_, world(), 8), third(*record_, world(), 9);
    first.add(true, 1, [](std::size_t) { return std::uint64_t{1}; });
    second.add(true, 1, [](std::size_t) { return std::uint64_t{2}; });
    third.add(true, 1, [](std::size_t) { return std::uint64_t{3}; });
  }
  const auto amounts = read().amounts;
  ASSERT_EQ(amounts.size(), 2u);
  EXPECT_EQ(amounts[0].ordinal, 7u);
  EXPECT_EQ(amounts[0].sent, Values{1});
  EXPECT_EQ(amounts[1].ordinal, 8u);
  EXPECT_EQ(amounts[1].sent, Values{2});
}

TEST_F(Amounts, EpochsAreReadWithTheirWindow) {
  EpochRecord& epoch = record_->epochs[5];
  epoch.key.set(std::uint64_t{world()} << 32 | 3);
  epoch.posts.set(2);
  epoch.starts.set(4);
  epoch.completes.set(3);
  record_->epochs[6].key.set(std::uint64_t{communicator_id(9, 1)} << 32 | 3);  // of a window that does not exist
  record_->header.epochs_dropped.set(6);
  const RankSnapshot rank = read();
  ASSERT_EQ(rank.epochs.size(), 2u);
  EXPECT_EQ(rank.epochs[0].window, 0u);
  EXPECT_EQ(rank.epochs[0].rank, 2);
  EXPECT_EQ(rank.epochs[0].posts, 2u);
  EXPECT_EQ(rank.epochs[0].starts, 4u);
  EXPECT_EQ(rank.epochs[0].completes, 3u);
  EXPECT_EQ(rank.epochs[1].window, no_index);
  EXPECT_EQ(rank.epochs_dropped, 6u);
}

}  // namespace
}  // namespace bestride::inline telemetry
