// SPDX-License-Identifier: Apache-2.0
#include "telemetry/report/ledger.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

namespace bestride::inline telemetry {
namespace {

LedgerLine line(std::string call, std::uint64_t bytes, std::string reason = "") {
  return {
      std::move(call), "16 x 8192 | 8 B", reason.empty() ? "pack" : "forward", std::move(reason), 1, bytes, 0.5, 0.25};
}

void expect_equal(const std::vector<LedgerLine>& a, const std::vector<LedgerLine>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].call, b[i].call);
    EXPECT_EQ(a[i].layout, b[i].layout);
    EXPECT_EQ(a[i].strategy, b[i].strategy);
    EXPECT_EQ(a[i].reason, b[i].reason);
    EXPECT_EQ(a[i].calls, b[i].calls);
    EXPECT_EQ(a[i].bytes, b[i].bytes);
    EXPECT_EQ(a[i].seconds, b[i].seconds);
    EXPECT_EQ(a[i].saved_seconds, b[i].saved_seconds);
    EXPECT_EQ(a[i].engine_seconds, b[i].engine_seconds);
  }
}

TEST(Ledger, AddsEqualKeysAndSortsByBytes) {
  Ledger ledger;
  ledger.post(line("MPI_Send", 10));
  ledger.post(line("MPI_Isend", 100));
  ledger.post(line("MPI_Send", 5));
  ledger.post(line("MPI_Send", 1, "model"));
  const auto lines = ledger.lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].call, "MPI_Isend");
  EXPECT_EQ(lines[1].bytes, 15u);
  EXPECT_EQ(lines[1].calls, 2u);
  EXPECT_EQ(lines[1].seconds, 1.0);
  EXPECT_EQ(lines[2].reason, "model");
}

TEST(Ledger, KeysAreUnambiguous) {
  Ledger ledger;
  ledger.post({"a", "bc", "", "", 1, 1, 0, 0});
  ledger.post({"ab", "c", "", "", 1, 1, 0, 0});
  EXPECT_EQ(ledger.lines().size(), 2u);
}

TEST(Ledger, EntriesBeyondTheCapacityAreMerged) {
  Ledger ledger(3);
  for (int i = 0; i < 1000; ++i) ledger.post(line("MPI_Call" + std::to_string(i), 1));
  ledger.post(line("MPI_Call0", 1));  // a known line still grows
  const auto lines = ledger.lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].call, "(others)");
  EXPECT_EQ(lines[0].calls, 997u);
  EXPECT_EQ(lines[1].call, "MPI_Call0");
  EXPECT_EQ(lines[1].bytes, 2u);
}

TEST(Ledger, SumsSaturate) {
  Ledger ledger;
  ledger.post(line("MPI_Send", std::numeric_limits<std::uint64_t>::max() - 1));
  ledger.post(line("MPI_Send", 10));
  EXPECT_EQ(ledger.lines()[0].bytes, std::numeric_limits<std::uint64_t>::max());
}

TEST(Ledger, CountsFromManyThreads) {
  Ledger ledger;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) ledger.post(line(i % 2 ? "MPI_Send" : "MPI_Recv", 3));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger.lines()[0].calls + ledger.lines()[1].calls, 4000u);
}

TEST(Ledger, AddsCacheCounts) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  Ledger here, there;
  here.post(CacheSums{1, 20, 3, 40, 5, 6});
  there.post(CacheSums{10, 200, 30, 400, 50, most});
  ASSERT_TRUE(here.merge(there.serialize()));
  const CacheSums sums = here.cache();
  EXPECT_EQ(sums.hits, 11u);
  EXPECT_EQ(sums.hit_bytes, 220u);
  EXPECT_EQ(sums.deltas, 33u);
  EXPECT_EQ(sums.delta_saved_bytes, 440u);
  EXPECT_EQ(sums.misses, 55u);
  EXPECT_EQ(sums.paused, most);
}

TEST(LedgerBlob, RoundTrip) {
  Ledger sent;
  sent.post({std::string("nul\0 and \n 3:abc", 16), "", "\xff", "\"", std::numeric_limits<std::uint64_t>::max(), 7, 0.1,
             -1e-300});
  sent.post(line("MPI_Send", 10));
  Ledger received;
  ASSERT_TRUE(received.merge(sent.serialize()));
  expect_equal(received.lines(), sent.lines());
  ASSERT_TRUE(received.merge(Ledger().serialize()));
  expect_equal(received.lines(), sent.lines());
  ASSERT_TRUE(received.merge(sent.serialize()));
  EXPECT_EQ(received.lines()[0].bytes, 20u);
}

TEST(LedgerBlob, MalformedBlobAddsNothing) {
  Ledger sent;
  for (int i = 0; i < 20; ++i) sent.post(line("MPI_Call" + std::to_string(i), 1u << i));
  const std::string good = sent.serialize();
  Ledger target;
  for (std::size_t length = 0; length < good.size(); ++length)
    ASSERT_FALSE(target.merge(good.substr(0, length))) << length;
  ASSERT_FALSE(target.merge(good + "x"));
  ASSERT_FALSE(target.merge(good + good));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int mask : {1, 0x20, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ mask);
      ASSERT_FALSE(target.merge(bad)) << "byte " << i;
    }
  EXPECT_TRUE(target.lines().empty());
}

/// A blob with a valid checksum and arbitrary contents, to test the parser itself.
std::string sealed(const std::string& body) {
  std::uint64_t h = 1469598103934665603u;
  for (const unsigned char c : body) h = (h ^ c) * 1099511628211u;
  char end[32];
  std::snprintf(end, sizeof end, "end %016llx\n", static_cast<unsigned long long>(h));
  return body + end;
}

TEST(LedgerBlob, InconsistentBlobWithValidChecksumAddsNothing) {
  const std::string zeros(16, '0'), infinity = "7ff0000000000000";
  Ledger target;
  const std::string sums = zeros + zeros + zeros + zeros + zeros + zeros;
  EXPECT_TRUE(target.merge(sealed("bestride-ledger 3 0\n" + sums)));
  for (const std::string& body : {
           std::string("bestride-ledger 3 0\n"),
           "bestride-ledger 3 0\n" + sums.substr(1),
           "bestride-ledger 3 1\n" + sums,
           "bestride-ledger 2 0\n" + sums,
           "bestride-ledger 3 18446744073709551615\n" + sums,
           "bestride-ledger 3 99999999999999999999\n" + sums,
           "bestride-ledger 3 -1\n" + sums,
           "bestride-ledger 3 1\n18446744073709551615:x" + zeros + sums,
           "bestride-ledger 3 1\n1:a0:0:0:" + zeros + zeros + zeros + zeros,
           "bestride-ledger 3 1\n1:a0:0:0:" + zeros + zeros + zeros + infinity + zeros + sums,
           "bestride-ledger 3 0\n1:a0:0:0:" + zeros + zeros + zeros + zeros + zeros + sums,
       })
    EXPECT_FALSE(target.merge(sealed(body))) << body;
  EXPECT_TRUE(target.lines().empty());
}

TEST(LedgerBlob, RandomBodiesWithValidChecksumDoNoHarm) {
  Ledger sent;
  for (int i = 0; i < 5; ++i) sent.post(line("MPI_Call" + std::to_string(i), 1u << i));
  const std::string good = sent.serialize();
  const std::string body = good.substr(0, good.size() - 21);
  std::mt19937 random(20240607);
  for (int round = 0; round < 20000; ++round) {
    std::string mutant = body;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % (mutant.size() + 1);
      switch (random() % 4) {
        case 0:
          if (at < mutant.size()) mutant[at] = static_cast<char>(random());
          break;
        case 1: mutant.insert(at, 1, "0123456789:-"[random() % 12]); break;
        case 2: mutant.erase(at, random() % 8); break;
        case 3: mutant.resize(at); break;
      }
    }
    Ledger target(8);
    const bool taken = target.merge(sealed(mutant));
    ASSERT_TRUE(taken || target.lines().empty());
    for (const LedgerLine& merged : target.lines()) {
      ASSERT_TRUE(std::isfinite(merged.seconds));
      ASSERT_LE(merged.call.size(), mutant.size());
    }
  }
}

}  // namespace
}  // namespace bestride::inline telemetry
